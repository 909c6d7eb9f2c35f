/** One run of a tool: sent, followed to its end, and shown. */

import { CallList } from "./calls.js";
import { address, announce, find, make } from "./elements.js";
import { heldKey } from "./key.js";
import { Problem, documentOf, problemElement, reasonOf } from "./problem.js";
import { ask } from "./sse.js";
import { language, say, text } from "./texts.js";

/** The request that runs a tool. @param {string} name @param {string} body @param {string} session @param {string} [key] */
export function requestOf(name, body, session, key) {
  const url = address(`/tools/${encodeURIComponent(name)}`, { sessionId: session });
  /** @type {Record<string, string>} */
  const headers = { "Content-Type": "application/json" };
  if (key) headers["Idempotency-Key"] = key;
  const tenant = /** @type {HTMLInputElement} */ (find("tenant")).value.trim();
  if (tenant && !heldKey()) headers["X-Tenant-ID"] = tenant;
  return { url, init: { method: "POST", headers, body } };
}

/** The same request for a shell; where it needs a key, that is taken from the shell, for what is copied is kept elsewhere. @param {ReturnType<typeof requestOf>} request */
export function asCurl({ url, init }) {
  const quoted = (/** @type {string} */ each) => `'${each.replaceAll("'", "'\\''")}'`;
  const headers = Object.entries(init.headers).map(([name, value]) => ` -H ${quoted(`${name}: ${value}`)}`);
  if (heldKey()) headers.push(' -H "Authorization: Bearer $TOOLCHAT_KEY"');
  return `curl -X POST ${quoted(url.href)}${headers.join("")} -d ${quoted(init.body)}`;
}

export class Run {
  /** @param {string} name of the tool */
  constructor(name) {
    this.name = name;
    this.calls = new CallList(true);
    this.after = make("div", "after");
    this.status = make("p", "status");
    const time = new Date().toLocaleTimeString(language() === "zh" ? "zh-CN" : "en-GB");
    const head = say(make("p", "muted run-time"), "at", { time });
    this.element = make("article", "run", head, this.status, this.calls.element, this.after);
    this.running = new AbortController();
  }

  stop() {
    this.running.abort();
  }

  /** Runs to the end. @param {ReturnType<typeof requestOf>} request
   * @returns {Promise<boolean>} whether the service answered, so that the same key would give the same answer */
  async start({ url, init }) {
    say(this.status, "running");
    try {
      await this.#follow(ask(url, { ...init, signal: this.running.signal }, (headers) => this.#onHeaders(headers)));
      return true;
    } catch (error) {
      if (this.running.signal.aborted) announce("runStopped", { name: this.name });
      else this.#fail(documentOf(error));
      return !this.running.signal.aborted && documentOf(error).code !== "connection-lost";
    } finally {
      this.status.remove();
      this.calls.end();
    }
  }

  /** @param {Headers} headers */
  #onHeaders(headers) {
    if (headers.has("idempotency-replayed")) this.after.append(say(make("p", "muted"), "answeredOnce"));
  }

  /** @param {AsyncGenerator<{event: string, data: any}>} events */
  async #follow(events) {
    let ended = false;
    for await (const { event, data } of events) {
      this.#show(event, data);
      ended ||= event === "done" || event === "error";
    }
    if (!ended) throw new Problem({ code: "connection-lost" });
  }

  /** @param {string} event @param {any} data */
  #show(event, data) {
    if (event === "tool_call_progress") this.calls.progress(data);
    else if (event === "error") this.#fail(data);
    else if (event.startsWith("tool_call")) this.calls.show(data);
    else if (event === "done") this.#finish(data);
    if (event !== "tool_call_progress") this.status.replaceChildren();
  }

  /** @param {import("./calls.js").Call & {request_id: string}} answer */
  #finish(answer) {
    // An answer that is given again has no events before it.
    if (!this.calls.shown.size) this.calls.show(answer);
    if (answer.sandbox) this.after.append(say(make("p", "badge sandbox"), "sandbox"));
    this.after.append(say(make("p", "muted"), "requestId", { id: answer.request_id }));
    announce("runDone", { name: this.name, outcome: text(`call.${answer.outcome}`) });
  }

  /** @param {import("./problem.js").ProblemDocument} document */
  #fail(document) {
    this.after.append(problemElement(document, "toolFailed"));
    announce("failed", { name: this.name, reason: reasonOf(document) });
  }
}
