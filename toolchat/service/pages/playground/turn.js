/** The turns of a conversation: each with its question, its answer, and what can be done with them. */

import { AnswerView, figures } from "./answer.js";
import { button, copyButton, make, sessionAddress } from "./elements.js";
import { picture } from "./images.js";
import { remembered } from "./remembered.js";
import { readJson } from "./sse.js";
import { say } from "./texts.js";

export class Turn {
  /** `known`: `question`, `plan`, `images`, the `view` of its answer, and `answer`, its text, once it is `answered`. */
  constructor(known) {
    Object.assign(this, known);
    const asked = [make("div", "text", this.question), ...(this.images ?? []).map(picture)];
    this.parts = [["user", ...asked], ["assistant", this.view.element]].map(([role, ...content]) => {
      return make("article", `turn ${role}`, say(make("h2", "hidden"), role), ...content, make("p", "turn-actions"));
    });
  }

  remove() {
    for (const each of this.parts) each.remove();
  }

  offer(onEdit, onAgain) {
    const [user, assistant] = this.parts.map((part) => part.lastElementChild);
    const copy = (content) => copyButton("plain-button", "copy", content);
    const edit = onEdit ? [button("plain-button", "edit", onEdit)] : [];
    user.replaceChildren(copy(() => this.question), ...edit);
    const again = onAgain ? [this.answered ? button("plain-button", "anotherAnswer", onAgain) : button("quiet", "askAgain", onAgain)] : [];
    assistant.replaceChildren(...(this.answered ? [copy(() => this.answer)] : []), ...again);
  }
}

/** The messages of each turn: a question, and what followed it. */
function turnsOf(messages) {
  const turns = [];
  for (const message of messages) {
    if (message.role === "user" || !turns.length) turns.push([]);
    turns.at(-1).push(message);
  }
  return turns;
}

function shownTurn(turn) {
  const answers = turn.filter((each) => each.role === "assistant");
  const ended = answers.findLast((each) => each.usage && each.model);
  const answer = answers.findLast((each) => each.text)?.text ?? "";
  const view = new AnswerView({ callsFirst: true });
  for (const call of ended?.tool_calls ?? []) view.calls.show(call);
  view.prose.finish(answer);
  if (ended) view.after.append(figures(ended));
  return { question: turn.find((each) => each.role === "user")?.text ?? "", answer, view, plan: false, answered: true };
}

export async function storedTurns(session) {
  if (!remembered.find(session)?.answered) return [];
  const { messages } = await readJson(sessionAddress(session));
  return turnsOf(messages).map(shownTurn);
}
