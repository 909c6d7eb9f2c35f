/** The approvals that the key may decide about or has asked for: first what waits, then what was decided. */

import { AnswerView } from "./answer.js";
import { address, announce, find, make } from "./elements.js";
import { visible } from "./json.js";
import { documentOf, problemElement } from "./problem.js";
import { readJson } from "./sse.js";
import { say } from "./texts.js";

const PAUSE = 5000;

/** One approval: its question, its card, and what came of a decision that was made here. */
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
  /** `onSeen` gets what the list holds, each time that it is read. */
  constructor(onSeen) {
    this.onSeen = onSeen;
    this.entries = new Map();
    this.count = 0;
    find("inbox-tab").hidden = false;
    find("inbox-more").addEventListener("click", () => this.#read(this.next));
    document.addEventListener("visibilitychange", () => this.#refresh());
    setInterval(() => this.#refresh(), PAUSE);
  }

  /** Reads the first page, and shows why it cannot be read. */
  start() {
    return this.#read("");
  }

  #refresh() {
    if (!document.hidden) this.#read("");
  }

  async #read(before) {
    try {
      const { approvals, next } = await readJson(address("/approvals", { before }));
      this.#place(approvals);
      if (before || this.next === undefined) this.next = next;
      if (!before) this.#countOf(approvals, next);
      this.#showEnds();
      this.onSeen(approvals);
      find("inbox-problem").replaceChildren();
    } catch (error) {
      find("inbox-problem").replaceChildren(problemElement(documentOf(error), "inboxFailed"));
    }
  }

  /** Adds each at its place; what is there already stays where it is, since somebody may be deciding about it. */
  #place(approvals) {
    const following = { waiting: null, decided: null };
    for (const approval of approvals.toReversed()) {
      const known = this.entries.get(approval.id);
      if (known) known.update(approval);
      const { element } = known ?? this.#add(approval, following[approval.status]);
      if (element.parentElement === find(`inbox-${approval.status}`)) following[approval.status] = element;
    }
  }

  #add(approval, following) {
    const entry = new Entry(approval);
    this.entries.set(approval.id, entry);
    find(`inbox-${approval.status}`).insertBefore(entry.element, following);
    return entry;
  }

  #countOf(approvals, next) {
    const count = approvals.filter((each) => each.may_decide).length;
    const isMore = next && count === approvals.length;
    find("inbox-count").textContent = count ? `${count}${isMore ? "+" : ""}` : "";
    if (count > this.count) announce("inboxNew", { count });
    this.count = count;
  }

  #showEnds() {
    find("inbox-more").hidden = !this.next;
    say(find("inbox-lead"), this.count ? "inboxLead" : "inboxEmpty");
    find("inbox-decided-title").hidden = !find("inbox-decided").children.length;
  }
}
