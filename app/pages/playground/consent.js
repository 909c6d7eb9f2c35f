/** The calls that wait for the user's consent, to be decided one by one. */

import { block } from "./calls.js";
import { button, make } from "./elements.js";
import { faultOf, objectOf, pretty, short } from "./json.js";
import { say, text } from "./texts.js";

/** One call that waits: its arguments, which may be changed, and a reason for the model if it is rejected. */
class Waiting {
  constructor(call, onDecided) {
    this.call = call;
    this.onDecided = onDecided;
    this.shown = block("arguments", short(call.arguments));
    this.reason = make("input", "field");
    Object.assign(this.reason, { type: "text", maxLength: 1000, ariaLabel: text("reason"), placeholder: text("reasonPlaceholder") });
    Object.assign(this.reason.dataset, { label: "reason", placeholder: "reasonPlaceholder" });
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
    const fault = this.editor && faultOf(this.editor.value, "object");
    if (fault) {
      this.editor.setCustomValidity(text(fault[0], "", fault[1]));
      this.editor.reportValidity();
      return;
    }
    this.#decide("approved", this.editor ? [["approved", "true"], ["arguments", this.editor.value]] : [["approved", "true"]]);
  }

  #reject() {
    const reason = this.reason.value.trim();
    this.#decide("rejected", reason ? [["approved", "false"], ["reason", JSON.stringify(reason)]] : [["approved", "false"]]);
  }

  #decide(key, members) {
    if (this.editor) this.editor.readOnly = true;
    this.buttons.replaceChildren(say(make("span", "muted"), key));
    this.onDecided(objectOf(members));
  }
}

export function consentElement(approval, onDecided) {
  const decisions = new Map();
  const form = make("div", "consent", say(make("p", "consent-title"), "approvalTitle"));
  for (const call of approval.calls) {
    const waiting = new Waiting(call, (decision) => {
      decisions.set(call.id, decision);
      form.querySelector("button.primary")?.focus();
      if (decisions.size === approval.calls.length) onDecided(objectOf([["decisions", objectOf([...decisions])]]));
    });
    form.append(waiting.element);
  }
  return form;
}
