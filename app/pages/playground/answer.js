/** One answer on the page: its text as it comes, its tool calls, its figures, and what went wrong. */

import { CallList, milliseconds } from "./calls.js";
import { consentElement } from "./consent.js";
import { address, announce, make } from "./elements.js";
import { bearingToken } from "./key.js";
import { Problem, documentOf, problemElement, reasonOf } from "./problem.js";
import { Prose } from "./prose.js";
import { ask } from "./sse.js";
import { say, text } from "./texts.js";

/**
 * @typedef {object} AnswerOptions
 * @property {() => string} name what a screen reader calls the answer
 * @property {() => HTMLElement} place what has the focus after the last decision about a call
 * @property {boolean} [callsFirst] the calls stand above the text, and closed
 * @property {(event: string, data: any) => void} [onEvent]
 * @property {(headers: Headers) => void} [onHeaders]
 * @property {() => void} [onShown] more of the text is shown
 * @property {(running: boolean) => void} [onRunning]
 */

/** Shows one answer in an element of its own. */
export class AnswerView {
  /** @param {AnswerOptions} options */
  constructor(options) {
    this.options = options;
    this.status = make("p", "status");
    this.prose = new Prose(options.onShown);
    this.calls = new CallList(!options.callsFirst);
    this.after = make("div", "after");
    const parts = [this.prose.element, this.calls.element];
    this.element = make("div", "answer", this.status, ...(options.callsFirst ? parts.reverse() : parts), this.after);
    /** @type {AbortController | null} */
    this.running = null;
    /** @type {any} The document of the answer once it is whole. */
    this.answer = null;
  }

  /** Asks, and shows what comes until the answer ends, fails or is stopped. @param {URL} url @param {RequestInit} init */
  async run(url, init = {}) {
    const running = (this.running = new AbortController());
    this.answer = null;
    this.after.replaceChildren();
    this.options.onRunning?.(true);
    say(this.status, "waiting");
    try {
      await this.#follow(ask(url, { ...init, signal: running.signal }, (headers) => this.#onHeaders(headers)));
    } catch (error) {
      if (running.signal.aborted) this.#stopped();
      else this.#fail(documentOf(error));
    } finally {
      this.status.replaceChildren();
      delete this.status.dataset.text;
      this.calls.end();
      this.prose.finish();
      this.running = null;
      this.options.onRunning?.(false);
    }
  }

  /** Ends the request; the service ends its work when the connection closes. */
  stop() {
    this.running?.abort();
  }

  /** Shows the calls that wait for consent, and goes on with the decisions. @param {import("./calls.js").PendingApproval} approval */
  wait(approval) {
    const url = address(`/approvals/${encodeURIComponent(approval.id)}`);
    this.after.append(consentElement(approval, (body) => {
      this.options.place().focus({ preventScroll: true });
      this.run(url, { method: "POST", headers: { "Content-Type": "application/json", ...bearingToken(approval.token) }, body });
    }));
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
    if (event === "delta") this.prose.append(data.text);
    else if (event === "tool_call_progress") this.calls.progress(data);
    else if (event === "tool_call_started" || event === "tool_call_finished") this.calls.show(data);
    else if (event === "error") this.#fail(data);
    else if (event === "done") this.#finish(data);
    if (event === "delta") this.status.replaceChildren();
    else if (event === "tool_call_started") say(this.status, "calling");
  }

  /** @param {any} answer */
  #finish(answer) {
    this.answer = answer;
    if (answer.approval) this.wait(answer.approval);
    else this.prose.finish(answer.answer);
    if (answer.finish_reason === "length") this.after.append(say(make("p", "muted"), "cutOff"));
    this.after.append(figures(answer));
    if (answer.approval) announce("approvalTitle");
    else announce("answered", { name: this.options.name(), answer: answer.answer });
  }

  /** @param {import("./problem.js").ProblemDocument} document */
  #fail(document) {
    this.after.append(problemElement(document));
    announce("failed", { name: this.options.name(), reason: reasonOf(document) });
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
}

/** @param {{usage: any, model: {provider: string, name: string}, duration_ms: number, rounds?: number}} answer */
export function figures(answer) {
  const { input_tokens: input, output_tokens: output, total_tokens: total } = answer.usage;
  const model = [...new Set([answer.model.provider, answer.model.name])].join("/");
  const tokens = make("dd", "", String(total));
  if (total) tokens.append(" ", say(make("small"), "tokensInOut", { input, output }));
  const list = make("dl", "figures");
  const add = (/** @type {string} */ name, /** @type {HTMLElement} */ value) => list.append(make("div", name, say(make("dt"), name), value));
  add("total", make("dd", "", milliseconds(answer.duration_ms)));
  add("tokens", tokens);
  if (answer.rounds) add("rounds", make("dd", "", String(answer.rounds)));
  add("model", make("dd", "", model));
  return list;
}
