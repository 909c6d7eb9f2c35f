/** One answer on the page: its text as it comes, its tool calls, its figures, and what went wrong. */

import { Problem, ask } from "./sse.js";
import { say, text } from "./texts.js";

/** Everything that the service offers lies beside this page, whatever path a proxy puts above both. */
const BASE = new URL("..", document.baseURI);

/** @param {string} path begins with a slash @param {Record<string, string>} [query] */
export function address(path, query = {}) {
  const url = new URL(`.${path}`, BASE);
  for (const [name, value] of Object.entries(query)) if (value) url.searchParams.set(name, value);
  return url;
}

/** Makes an element; texts never become markup.
 * @param {string} tag @param {string} className @param {...(Node | string)} children @returns {HTMLElement} */
export function make(tag, className = "", ...children) {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...children);
  return element;
}

/** @param {string} className @param {string} key @param {() => void} action */
export function button(className, key, action) {
  const element = say(make("button", className), key);
  element.type = "button";
  element.addEventListener("click", action);
  return element;
}

/** Tells users of a screen reader, once, when something has ended. @param {string} key @param {object} values */
export function announce(key, values = {}) {
  document.getElementById("announcer").textContent = text(key, key, values);
}

/** Indents JSON without reading its numbers, which may be longer than JavaScript's. @param {string} json */
export function pretty(json) {
  try {
    if (typeof JSON.parse(json) !== "object") return json;
  } catch {
    return json;
  }
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|[^\s{}[\],:"]+|[{}[\],:]/g);
  let depth = 0;
  const line = () => "\n" + "  ".repeat(depth);
  return tokens.map((token, at) => {
    const before = tokens[at - 1], after = tokens[at + 1];
    if ("{[".includes(token)) return depth++, "}]".includes(after) ? token : token + line();
    if ("}]".includes(token)) return depth--, "{[".includes(before) ? token : line() + token;
    if (token === ",") return token + line();
    return token === ":" ? ": " : token[0] === '"' ? JSON.stringify(JSON.parse(token)) : token;
  }).join("");
}

/** @param {string} name the key of a text @param {string} content */
function block(name, content) {
  const shown = make("pre", "", content);
  shown.tabIndex = 0;
  return make("div", "block", say(make("p", "block-name"), name), shown);
}

/** @param {any} value */
function shownArguments(value) {
  const indented = pretty(typeof value === "string" ? value : JSON.stringify(value));
  return indented.length < 90 ? indented.replace(/\n\s*/g, " ") : indented;
}

/**
 * A tool call that opens and closes.
 * @param {{name: string, arguments: any, result?: string, outcome?: string, error_kind?: string, duration_ms?: number, cached?: boolean}} call
 * @param {boolean} open
 */
export function callElement(call, open) {
  const state = call.outcome ?? (call.result === undefined ? "running" : "");
  const summary = make("summary", "", make("code", "call-name", call.name));
  if (state) summary.append(say(make("span", `badge ${state}`), state));
  if (call.cached) summary.append(say(make("span", "badge"), "cached"));
  if (call.duration_ms !== undefined) summary.append(make("span", "ms", milliseconds(call.duration_ms)));
  const details = make("details", "call", summary, block("arguments", shownArguments(call.arguments)));
  if (call.result !== undefined) details.append(block("result", pretty(call.result)));
  details.open = open;
  return details;
}

/** @param {number} ms */
export function milliseconds(ms) {
  if (ms >= 1000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}

/** A problem document, and what to do about it. @param {import("./sse.js").ProblemDocument} document */
export function problemElement(document) {
  const title = document.title ? make("strong", "", document.title) : say(make("strong"), "problem");
  const shown = make("div", "problem", make("p", "", title, " ", make("code", "", document.code)));
  if (document.detail) shown.append(make("p", "", document.detail));
  const advice = `advice.${document.code}`;
  if (text(advice, "")) shown.append(say(make("p"), advice));
  else if (document.retryable) shown.append(say(make("p"), "advice.retry"));
  if (document.request_id) shown.append(say(make("p", "muted"), "requestId", { id: document.request_id }));
  return shown;
}

/** Shows one answer in an element of its own. */
export class AnswerView {
  /**
   * @param {{name: () => string, callsFirst?: boolean, onEvent?: (event: string, data: any) => void,
   *   onHeaders?: (headers: Headers) => void, onRunning?: (running: boolean) => void}} options
   */
  constructor(options) {
    this.options = options;
    this.status = make("p", "status");
    this.text = make("div", "text");
    this.calls = make("div", "calls");
    this.after = make("div", "after");
    const parts = options.callsFirst ? [this.calls, this.text] : [this.text, this.calls];
    this.element = make("div", "answer", this.status, ...parts, this.after);
    /** @type {Map<string, HTMLElement>} */
    this.callElements = new Map();
    /** @type {AbortController | null} */
    this.running = null;
  }

  /** Asks, and shows what comes until the answer ends, fails or is stopped. @param {URL} url @param {RequestInit} init */
  async run(url, init = {}) {
    const running = (this.running = new AbortController());
    this.after.replaceChildren();
    this.options.onRunning?.(true);
    say(this.status, "waiting");
    try {
      await this.#follow(ask(url, { ...init, signal: running.signal }, (headers) => this.#onHeaders(headers)));
    } catch (error) {
      if (!running.signal.aborted) this.#fail(error instanceof Problem ? error.document : { code: "internal", detail: String(error) });
      else this.#stopped();
    } finally {
      this.status.replaceChildren();
      delete this.status.dataset.text;
      this.running = null;
      this.options.onRunning?.(false);
    }
  }

  /** Ends the request; the service ends its work when the connection closes. */
  stop() {
    this.running?.abort();
  }

  /** @param {AsyncGenerator<{event: string, data: any}>} events */
  async #follow(events) {
    let ended = false;
    for await (const { event, data } of events) {
      this.#show(event, data);
      this.options.onEvent?.(event, data);
      ended ||= event === "done" || event === "error";
    }
    if (!ended) throw new Problem({ code: "connection-lost", request_id: this.requestId });
  }

  /** @param {string} event @param {any} data */
  #show(event, data) {
    if (event === "delta") this.text.append(data.text);
    else if (event === "tool_call_started" || event === "tool_call_finished") this.#showCall(data);
    else if (event === "error") this.#fail(data);
    else if (event === "done") this.#finish(data);
    if (event === "delta") this.status.replaceChildren();
    else if (event === "tool_call_started") say(this.status, "calling");
  }

  #showCall(call) {
    const key = `${call.round} ${call.id}`;
    const before = this.callElements.get(key);
    const shown = callElement(call, before ? before.open : !this.options.callsFirst);
    this.callElements.set(key, shown);
    if (before) before.replaceWith(shown);
    else this.calls.append(shown);
  }

  /** @param {any} answer */
  #finish(answer) {
    if (answer.approval) this.after.append(this.#consent(answer.approval));
    else this.text.textContent = answer.answer;
    if (answer.finish_reason === "length") this.after.append(say(make("p", "muted"), "cutOff"));
    this.after.append(figures(answer));
    if (answer.approval) announce("approvalTitle");
    else announce("answered", { name: this.options.name(), answer: answer.answer });
  }

  /** @param {import("./sse.js").ProblemDocument} document */
  #fail(document) {
    this.after.append(problemElement(document));
    announce("failed", { name: this.options.name(), reason: document.detail ?? text(`advice.${document.code}`, document.code) });
  }

  #stopped() {
    this.after.append(say(make("p", "muted"), "stopped"));
    announce("stoppedName", { name: this.options.name() });
  }

  /** @param {Headers} headers */
  #onHeaders(headers) {
    this.requestId = headers.get("x-request-id") ?? "";
    this.options.onHeaders?.(headers);
  }

  /** The calls that wait, to be decided one by one. @param {{id: string, calls: {id: string, name: string, arguments: any}[]}} approval */
  #consent(approval) {
    /** @type {Record<string, {approved: boolean}>} */
    const decisions = {};
    const form = make("div", "consent", say(make("p", "consent-title"), "approvalTitle"));
    for (const call of approval.calls) {
      const buttons = make("p", "decide");
      const decide = (/** @type {boolean} */ approved) => {
        decisions[call.id] = { approved };
        buttons.replaceChildren(say(make("span", "muted"), approved ? "approved" : "rejected"));
        if (Object.keys(decisions).length === approval.calls.length) this.#decided(approval.id, decisions);
      };
      buttons.append(button("primary", "approve", () => decide(true)), button("quiet", "reject", () => decide(false)));
      form.append(make("div", "waiting-call", make("code", "call-name", call.name), block("arguments", shownArguments(call.arguments)), buttons));
    }
    return form;
  }

  /** @param {string} identifier @param {Record<string, {approved: boolean}>} decisions */
  #decided(identifier, decisions) {
    const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ decisions }) };
    this.run(address(`/approvals/${encodeURIComponent(identifier)}`), init);
  }
}

/** @param {any} answer the document of a finished answer */
function figures(answer) {
  const { input_tokens: input, output_tokens: output, total_tokens: total } = answer.usage;
  const model = [...new Set([answer.model.provider, answer.model.name])].join("/");
  const tokens = make("dd", "", String(total));
  if (total) tokens.append(" ", say(make("small"), "tokensInOut", { input, output }));
  const list = make("dl", "figures");
  const add = (/** @type {string} */ name, /** @type {HTMLElement} */ value) => list.append(make("div", name, say(make("dt"), name), value));
  add("total", make("dd", "", milliseconds(answer.duration_ms)));
  add("tokens", tokens);
  add("rounds", make("dd", "", String(answer.rounds)));
  add("model", make("dd", "", model));
  return list;
}
