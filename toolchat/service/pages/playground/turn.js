/** One turn of a conversation on the page: a question, its answer, and what can be done with each. */

import { button, copyButton, make } from "./elements.js";
import { say } from "./texts.js";

export class Turn {
  /** `known`: `question`, `plan`, the `view` of its answer, and `answer`, its text, once it is `answered`. */
  constructor(known) {
    Object.assign(this, known);
    this.parts = [["user", make("div", "text", this.question)], ["assistant", this.view.element]].map(([role, content]) => {
      return make("article", `turn ${role}`, say(make("h2", "hidden"), role), content, make("p", "turn-actions"));
    });
  }

  remove() {
    for (const each of this.parts) each.remove();
  }

  /** Shows what can be done; without `onAgain` nothing that asks anew. */
  offer(onEdit, onAgain) {
    const [user, assistant] = this.parts.map((part) => part.lastElementChild);
    const copy = (content) => copyButton("plain-button", "copy", content);
    const edit = onEdit ? [button("plain-button", "edit", onEdit)] : [];
    user.replaceChildren(copy(() => this.question), ...edit);
    const again = onAgain ? [this.answered ? button("plain-button", "anotherAnswer", onAgain) : button("quiet", "askAgain", onAgain)] : [];
    assistant.replaceChildren(...(this.answered ? [copy(() => this.answer)] : []), ...again);
  }
}
