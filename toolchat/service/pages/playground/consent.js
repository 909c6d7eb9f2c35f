/** The calls that wait for the user's consent, to be decided one by one. */

import { block } from "./calls.js";
import { button, make } from "./elements.js";
import { faultOf, parsed, pretty, short } from "./json.js";
import { label, say, text, timeIn } from "./texts.js";

/** One call that waits: its arguments, which may be changed, and a reason for the model if it is rejected. */
class Waiting {
  constructor(call, onDecided) {
    this.call = call;
    this.onDecided = onDecided;
    this.shown = block("arguments", short(call.arguments));
    this.reason = make("input", "field");
    Object.assign(label(this.reason, "reason"), { type: "text", maxLength: 1000, placeholder: text("reasonPlaceholder") });
    this.reason.dataset.placeholder = "reasonPlaceholder";
    this.buttons = make("div", "decide",
      button("primary", "approve", () => this.#approve()),
      button("quiet", "edit", () => this.#edit()),
      make("span", "rejecting", this.reason, button("quiet", "reject", () => this.#reject())));
    this.element = make("div", "waiting-call", make("code", "call-name", call.name), this.shown, this.buttons);
  }

  #edit() {
    const { name, arguments: given } = this.call;
    this.editor = make("textarea", "field json");
    this.editor.value = pretty(typeof given === "string" ? given : JSON.stringify(given));
    this.editor.spellcheck = false;
    this.editor.ariaLabel = text("editArguments", "", { name });
    this.editor.addEventListener("input", () => this.editor.setCustomValidity(""));
    this.shown.replaceWith(this.editor);
    this.buttons.children[1].remove();
    this.editor.focus();
  }

  #approve() {
    this.editor?.setCustomValidity(faultOf(this.editor.value, "object"));
    if (this.editor?.reportValidity() === false) return;
    this.#decide("approved", { approved: true, arguments: this.editor && parsed(this.editor.value) });
  }

  #reject() {
    this.#decide("rejected", { approved: false, reason: this.reason.value.trim() || undefined });
  }

  #decide(key, decision) {
    if (this.editor) this.editor.readOnly = true;
    this.buttons.replaceChildren(say(make("span", "muted"), key));
    this.onDecided(decision);
  }
}

/** Whether it is not for the reader to decide: it was decided, or a call names the role of somebody else. */
export const isForAnother = ({ calls, status, may_decide: mayDecide }) =>
  status === "decided" || (!mayDecide && calls.some(({ approver }) => approver));

/** What was decided, or who will. */
export function anotherElement({ calls, status, decision, by, at, reason, answer }) {
  if (status !== "decided") {
    const roles = [...new Set(calls.map(({ approver }) => approver).filter(Boolean))].join(", ");
    return say(make("p", "muted"), "waitsForAnother", { names: calls.map(({ name }) => name).join(", "), roles });
  }
  const words = [say(make("strong"), "title.already-decided"), say(make("p"), `decided.${decision}`, { time: timeIn((Date.parse(at) - Date.now()) / 1000) })];
  return make("div", "consent", ...words, ...[by, reason, answer].filter(Boolean).map((each) => make("p", "muted", each)));
}

/** What the reader has to know to decide: what the tool does, and for whom. */
function about(call, { asked_by: asker, tenant }) {
  const lines = [call.description, asker && text("askedBy", "", { asker, tenant })];
  return lines.filter(Boolean).map((line) => make("p", "muted", line));
}

export function consentElement(approval, onDecided) {
  const decisions = new Map();
  const form = make("div", "consent", say(make("strong"), "approvalTitle"));
  for (const call of approval.calls) {
    const waiting = new Waiting(call, (decision) => {
      decisions.set(call.id, decision);
      form.querySelector("button.primary")?.focus();
      if (decisions.size === approval.calls.length) onDecided(JSON.stringify({ decisions: Object.fromEntries(decisions) }));
    });
    form.append(waiting.element, ...about(call, approval));
  }
  return form;
}
