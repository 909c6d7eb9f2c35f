/** The approvals that the key may decide about or has asked for: first what waits, then what was decided. */

import { AnswerView } from "./answer.js";
import { address, announce, find, make } from "./elements.js";
import { visible } from "./json.js";
import { heldKey } from "./key.js";
import { documentOf, problemElement } from "./problem.js";
import { recordDecided } from "./running.js";
import { readJson } from "./sse.js";
import { say } from "./texts.js";

const PAUSE = 5000, FIRST = 20;

export class Entry {
  constructor(approval) {
    this.element = make("div", "entry", make("p", "question", visible(approval.question)));
    this.element.tabIndex = -1;
    const name = () => approval.calls.map((call) => call.name).join(", ");
    this.view = new AnswerView({ name, place: () => this.element });
    this.element.append(this.view.element);
    this.update(approval);
  }

  /** Shows what somebody else has decided meanwhile; what is being read, written or decided here is left alone. */
  update(approval) {
    if (approval.status === this.status || this.view.settled !== undefined) return;
    this.status = approval.status;
    this.view.wait(approval);
  }
}

export class Inbox {
  constructor() {
    this.entries = new Map();
    this.count = 0;
    find("inbox-tab").hidden = false;
    find("inbox-more").addEventListener("click", () => this.#read(this.next));
    const refresh = () => document.hidden || !heldKey() || this.#read(); // who gives none is not asked again
    document.addEventListener("visibilitychange", refresh);
    setInterval(refresh, PAUSE);
    this.#read();
  }

  async #read(before = "") {
    try {
      const { approvals, next } = await readJson(address("/approvals", { before }));
      if (before || this.next === undefined) this.next = next;
      this.#place(approvals);
      if (!before) this.#showCount(approvals.filter((each) => each.may_decide).length, next);
      find("inbox-more").hidden = !this.next;
      find("inbox-decided-title").hidden = !find("inbox-decided").children.length;
      find("inbox-problem").replaceChildren();
      approvals.forEach(recordDecided);
    } catch (error) {
      find("inbox-problem").replaceChildren(problemElement(documentOf(error), "inboxFailed"));
    }
  }

  /** Adds each at its place; what is there already stays where it is, since somebody may be deciding about it. */
  #place(approvals) {
    const following = { waiting: null, decided: null };
    for (const approval of approvals.toReversed()) {
      const list = find(`inbox-${approval.status}`), known = this.entries.get(approval.id), entry = known ?? new Entry(approval);
      this.entries.set(approval.id, entry);
      if (known) known.update(approval);
      else list.insertBefore(entry.element, following[approval.status]);
      if (entry.element.parentElement === list) following[approval.status] = entry.element;
    }
  }

  /** The first page has those that wait; where it is full of them, there may be more. */
  #showCount(count, next) {
    find("inbox-count").textContent = count ? `${count}${next && count >= FIRST ? "+" : ""}` : "";
    say(find("inbox-lead"), count ? "inboxLead" : "inboxEmpty");
    if (count > this.count) announce("inboxNew", { count });
    this.count = count;
  }
}
