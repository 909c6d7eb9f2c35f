/** Tool calls on the page: those that were run, and those that wait for the user's consent. */

import { button, make } from "./elements.js";
import { say } from "./texts.js";

/**
 * @typedef {{id: string, name: string, arguments: any, round?: number, result?: string, outcome?: string,
 *   error_kind?: string, duration_ms?: number, cached?: boolean}} Call
 * @typedef {{id: string, expires_in: number, calls: Call[]}} PendingApproval
 * @typedef {Record<string, {approved: boolean}>} Decisions by call id
 */

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

/** @param {number} ms */
export function milliseconds(ms) {
  if (ms >= 1000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
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

/** What became of a call: that the user rejected it is no error. @param {Call} call */
function stateOf({ outcome, error_kind, result }) {
  if (error_kind === "rejected") return "rejected";
  return outcome ?? (result === undefined ? "running" : "");
}

/** A tool call that opens and closes. @param {Call} call @param {boolean} open */
export function callElement(call, open) {
  const state = stateOf(call);
  const summary = make("summary", "", make("code", "call-name", call.name));
  if (state) summary.append(say(make("span", `badge ${state}`), `call.${state}`));
  if (call.cached) summary.append(say(make("span", "badge"), "cached"));
  if (call.duration_ms !== undefined && state !== "rejected") summary.append(make("span", "ms", milliseconds(call.duration_ms)));
  const details = make("details", "call", summary, block("arguments", shownArguments(call.arguments)));
  if (call.result !== undefined) details.append(block("result", pretty(call.result)));
  details.open = open;
  return details;
}

/** The tool calls of one answer, each shown as it stands. */
export class CallList {
  /** @param {boolean} open whether a call shows its arguments and its result at once */
  constructor(open) {
    this.open = open;
    this.element = make("div", "calls");
    /** @type {Map<string, {call: Call, element: HTMLDetailsElement}>} */
    this.shown = new Map();
  }

  /** @param {Call} call */
  show(call) {
    const key = `${call.round} ${call.id}`;
    const before = this.shown.get(key)?.element;
    const element = callElement(call, before?.open ?? this.open);
    this.shown.set(key, { call, element });
    if (before) before.replaceWith(element);
    else this.element.append(element);
  }

  /** No call goes on once its answer has ended. */
  end() {
    for (const { call } of [...this.shown.values()]) if (!call.outcome) this.show({ ...call, outcome: "stopped" });
  }
}

/** The calls that wait, to be decided one by one.
 * @param {PendingApproval} approval @param {(decisions: Decisions) => void} onDecided */
export function consentElement(approval, onDecided) {
  /** @type {Decisions} */
  const decisions = {};
  const form = make("div", "consent", say(make("p", "consent-title"), "approvalTitle"));
  for (const call of approval.calls) {
    const buttons = make("p", "decide");
    const decide = (/** @type {boolean} */ approved) => {
      decisions[call.id] = { approved };
      buttons.replaceChildren(say(make("span", "muted"), approved ? "approved" : "rejected"));
      form.querySelector("button")?.focus();
      if (Object.keys(decisions).length === approval.calls.length) onDecided(decisions);
    };
    buttons.append(button("primary", "approve", () => decide(true)), button("quiet", "reject", () => decide(false)));
    form.append(make("div", "waiting-call", make("code", "call-name", call.name), block("arguments", shownArguments(call.arguments)), buttons));
  }
  return form;
}
