/** The card of an approval: the calls, who asks, how much time is left, and who decides or has decided. */

import { block } from "./calls.js";
import { button, make } from "./elements.js";
import { faultOf, parsed, pretty, short, visible } from "./json.js";
import { label, say, text, timeAt } from "./texts.js";

/** One call: what it does, its arguments, and for who decides what can be done with it. */
class Call {
  constructor(call, onDecided) {
    this.call = call;
    this.onDecided = onDecided;
    this.shown = block("arguments", short(call.arguments));
    this.element = make("div", "waiting-call", make("code", "call-name", call.name));
    if (call.description) this.element.append(make("p", "muted", visible(call.description)));
    this.element.append(this.shown, ...(onDecided ? [this.#choices()] : []));
  }

  #choices() {
    this.reason = make("input", "field");
    Object.assign(label(this.reason, "reason"), { type: "text", maxLength: 1000, placeholder: text("reasonPlaceholder") });
    this.reason.dataset.placeholder = "reasonPlaceholder";
    const edit = button("quiet", "edit", () => this.#edit(edit));
    return (this.choices = make("div", "decide", button("primary", "approve", () => this.#approve()),
      ...(this.call.may_edit ? [edit] : []),
      make("span", "rejecting", this.reason, button("quiet", "reject", () => this.#reject()))));
  }

  #edit(edit) {
    const { name, arguments: given } = this.call;
    const value = pretty(typeof given === "string" ? given : JSON.stringify(given));
    this.editor = Object.assign(make("textarea", "field json"), { value, spellcheck: false, ariaLabel: text("editArguments", "", { name }) });
    this.editor.addEventListener("input", () => this.editor.setCustomValidity(""));
    this.shown.replaceWith(this.editor);
    edit.remove();
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
    this.choices.replaceChildren(say(make("span", "muted"), key));
    this.onDecided(decision);
  }
}

function titleOf({ calls, status, may_decide: isMine, decision, by, at }) {
  const title = make("strong"), roles = [...new Set(calls.map(({ approver }) => approver).filter(Boolean))].join(", ");
  if (status === "decided") return say(title, `decided.${decision}`, { by: by || text("nobody"), time: timeAt(Date.parse(at)) });
  if (isMine) return say(title, roles ? "decideAs" : "approvalTitle", { roles });
  return say(title, roles ? "waitsForAnother" : "waitsForAsker", { roles });
}

/** For whom the calls would run, and until when somebody can decide. */
function about({ asked_by: asker, tenant, status, expires_in: seconds }) {
  const lines = asker ? [say(make("span"), tenant ? "askedBy" : "askedWithout", { asker: visible(asker), tenant: visible(tenant) })] : [];
  if (status === "waiting") lines.push(showLeft(make("span"), Date.now() + seconds * 1000));
  return lines.length ? [make("p", "muted about", ...lines)] : [];
}

function showLeft(element, until) {
  const minutes = Math.ceil((until - Date.now()) / 60_000);
  element.dataset.until = until;
  if (minutes > 120) return say(element, "left.hours", { left: Math.floor(minutes / 60) });
  return say(element, minutes > 0 ? "left.minutes" : "left.none", { left: minutes });
}

setInterval(() => { for (const each of document.querySelectorAll("[data-until]")) showLeft(each, Number(each.dataset.until)); }, 15_000);

/** The card; the decisions about all of its calls are given together. */
export function approvalCard(approval, onDecided) {
  const { calls, status, reason, answer, failure, may_decide: isMine } = approval;
  const decisions = new Map(), isOpen = status === "waiting" && isMine;
  const decide = (id) => (decision) => {
    decisions.set(id, decision);
    card.querySelector("button.primary")?.focus();
    if (decisions.size === calls.length) onDecided(JSON.stringify({ decisions: Object.fromEntries(decisions) }));
  };
  const card = make("div", isOpen ? "consent" : "consent closed", titleOf(approval));
  card.append(...calls.map((call) => new Call(call, isOpen ? decide(call.id) : null).element), ...about(approval));
  card.append(...[reason, answer, failure].filter(Boolean).map((each) => make("p", "text", visible(each))));
  return card;
}
