/** Tool calls on the page, each shown as it stands. */

import { copyButton, make } from "./elements.js";
import { pretty, short, visible } from "./json.js";
import { say } from "./texts.js";

export function milliseconds(ms) {
  if (ms >= 1000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}

export function block(name, content) {
  const shown = make("pre", "", visible(content));
  shown.tabIndex = 0;
  const copy = copyButton("plain-button", "copy", () => content);
  return make("div", "block", make("div", "block-head", say(make("p", "block-name"), name), copy), shown);
}

/** What became of a call: that the user rejected it is no error. */
function stateOf({ outcome, error_kind, result }) {
  if (error_kind === "rejected") return "rejected";
  return outcome ?? (result === undefined ? "running" : "");
}

function callElement(call, open) {
  const state = stateOf(call);
  const summary = make("summary", "", make("code", "call-name", call.name));
  if (state) summary.append(say(make("span", `badge ${state}`), `call.${state}`));
  for (const mark of ["cached", "repaired"]) if (call[mark]) summary.append(say(make("span", "badge"), mark));
  if (call.approved_by) summary.append(say(make("span", "badge"), "approvedBy", { by: call.approved_by }));
  if (call.duration_ms !== undefined && state !== "rejected") summary.append(make("span", "ms", milliseconds(call.duration_ms)));
  const details = make("details", "call", summary, block("arguments", short(call.arguments)));
  if (call.result !== undefined) details.append(block("result", pretty(call.result)));
  details.open = open;
  return details;
}

function progressElement({ done, of, text: told }) {
  const bar = make("progress");
  if (of) Object.assign(bar, { max: of, value: done });
  const counted = say(make("span"), of ? "progressOf" : "progressDone", { done, of });
  bar.ariaLabel = counted.textContent;
  return make("span", "progress", bar, make("span", "", counted, told ? ` · ${visible(told)}` : ""));
}

export class CallList {
  constructor(open) {
    this.open = open;
    this.element = make("div", "calls");
    this.shown = new Map();
  }

  show(call) {
    const before = this.shown.get(keyOf(call))?.element;
    const element = callElement(call, before?.open ?? this.open);
    this.shown.set(keyOf(call), { call, element });
    const focused = before?.contains(document.activeElement);
    if (before) before.replaceWith(element);
    else this.element.append(element);
    if (focused) element.querySelector("summary").focus({ preventScroll: true });
  }

  progress(progress) {
    const summary = this.shown.get(keyOf(progress))?.element.querySelector("summary");
    summary?.querySelector(".progress")?.remove();
    summary?.append(progressElement(progress));
  }

  clear() {
    this.shown.clear();
    this.element.replaceChildren();
  }

  /** No call goes on once its answer has ended. */
  end() {
    for (const { call } of [...this.shown.values()]) if (!call.outcome) this.show({ ...call, outcome: "stopped" });
  }
}

/** Ids are the model's, and some models use them again in the next round. */
const keyOf = ({ id, round }) => `${round} ${id}`;
