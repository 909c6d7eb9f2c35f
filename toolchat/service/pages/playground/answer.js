/** One answer on the page: its text as it comes, its tool calls, its figures, and what went wrong. */

import { CallList, milliseconds } from "./calls.js";
import { approvalCard } from "./consent.js";
import { address, announce, make } from "./elements.js";
import { bearingToken } from "./key.js";
import { Prose } from "./markdown.js";
import { documentOf, problemElement, reasonOf } from "./problem.js";
import { ask, questionIn, readJson } from "./sse.js";
import { say } from "./texts.js";

export class AnswerView {
  constructor(options) {
    this.options = options;
    this.status = make("p", "status");
    this.prose = new Prose(options.onShown);
    this.calls = new CallList(!options.callsFirst);
    this.after = make("div", "after");
    const parts = [this.prose.element, this.calls.element];
    this.element = make("div", "answer", this.status, ...(options.callsFirst ? parts.reverse() : parts), this.after);
    this.running = this.question = this.answer = null;
  }

  /** Asks, and shows what comes until the answer ends, fails or is stopped; `onRefused` may ask for it again. */
  async run(url, init = {}, onRefused) {
    const running = (this.running = new AbortController());
    this.answer = null;
    this.after.replaceChildren();
    this.options.onRunning?.(true);
    this.settled = false;
    let begun = false;
    say(this.status, this.options.waiting ?? "waiting");
    try {
      const events = ask(url, { ...init, signal: running.signal }, (headers) => {
        begun = true;
        this.question = questionIn(headers);
        this.options.onHeaders?.(headers);
      });
      for await (const { event, data } of events) {
        this.#show(event, data);
        this.options.onEvent?.(event, data);
      }
      this.settled = true;
    } catch (error) {
      const document = documentOf(error);
      const isDecided = document.code === "already-decided"; // by whom, the card says
      if (running.signal.aborted) this.#stopped();
      else if (!isDecided) this.#fail(document);
      if (isDecided || (document.retryable && !begun)) onRefused?.();
      // The service has answered, so that the same key would give the same answer.
      this.settled = !running.signal.aborted && document.code !== "connection-lost";
    } finally {
      if (this.settled) this.question = null;
      this.status.replaceChildren();
      delete this.status.dataset.text;
      this.calls.end();
      this.prose.finish();
      this.running = null;
      this.options.onRunning?.(false);
    }
  }

  /** Ends the request; the service ends its work when the connection closes, or when it is told to. */
  stop() {
    if (this.running && this.question) this.#cancel(this.question);
    this.question = null;
    this.leave();
  }

  async #cancel(question) {
    try {
      await readJson(question, { method: "DELETE" });
    } catch (error) {
      if (documentOf(error).code !== "not-found") this.#fail(documentOf(error)); // it goes on
    }
  }

  /** Ends the request; an answer in the background goes on. */
  leave() {
    this.running?.abort();
  }

  /** Shows the calls that wait for a decision, and goes on with one; if the service is busy, they wait again. */
  async wait({ id, token, ...known }) {
    const approval = (this.answer = { approval: { id } }).approval;
    const url = address(`/approvals/${encodeURIComponent(id)}`), headers = bearingToken(token);
    try {
      const shown = known.status ? { id, ...known } : await readJson(url, { headers });
      if (this.answer?.approval !== approval) return; // it is asked again
      this.card?.remove();
      this.card = approvalCard(shown, (body) => {
        this.options.place().focus({ preventScroll: true });
        this.run(url, { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body }, () => this.wait({ id, token }));
      });
      this.after.append(this.card);
    } catch (error) {
      this.#fail(documentOf(error));
    }
  }

  #show(event, data) {
    if (event === "delta") this.prose.append(data.text);
    else if (event === "tool_call_progress") this.calls.progress(data);
    else if (event === "tool_call_started" || event === "tool_call_finished") this.calls.show(data);
    else if (event === "error") this.#fail(data);
    else if (event === "cancelled") this.#stopped();
    else if (event === "restarted") this.prose.finish(""), this.calls.clear();
    else if (event === "reconnecting") say(this.status, event);
    else if (event === "waiting") say(this.status, "queued", { reason: reasonOf(data) });
    else if (event === "approval") this.wait(data);
    else if (event === "done") this.#finish(data);
    if (event === "delta") this.status.replaceChildren();
    else if (event === "tool_call_started") say(this.status, "calling");
  }

  #finish(answer) {
    this.answer = answer;
    if (this.options.onDone) return this.options.onDone(answer);
    if (answer.approval) this.wait(answer.approval);
    else this.prose.finish(answer.answer);
    if (answer.finish_reason === "length") this.after.append(say(make("p", "muted"), "cutOff"));
    this.after.append(figures(answer));
    if (answer.approval) announce("approvalTitle");
    else announce("answered", { name: this.options.name(), answer: answer.answer });
  }

  #fail(document) {
    this.after.append(problemElement(document, this.options.failed));
    announce("failed", { name: this.options.name(), reason: reasonOf(document) });
  }

  #stopped() {
    this.after.append(say(make("p", "muted"), "stopped"));
    announce("stoppedName", { name: this.options.name() });
  }
}

export function figures(answer) {
  const { input_tokens: input, output_tokens: output, total_tokens: total } = answer.usage;
  const model = [...new Set([answer.model.provider, answer.model.name])].join("/");
  const tokens = make("span", "", String(total));
  if (total) tokens.append(" ", say(make("small"), "tokensInOut", { input, output }));
  const shown = { total: milliseconds(answer.duration_ms), tokens, rounds: answer.rounds, model };
  const rows = Object.entries(shown).filter(([, value]) => value);
  return make("dl", "figures", ...rows.map(([name, value]) => make("div", name, say(make("dt"), name), make("dd", "", value))));
}
