/** A conversation as the service keeps it: the turns, each with its question and the view of its answer. */

import { AnswerView, figures } from "./answer.js";
import { sessionAddress } from "./elements.js";
import { remembered } from "./remembered.js";
import { readJson } from "./sse.js";

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

/** The turns of a session that the service has answered before. */
export async function storedTurns(session) {
  if (!remembered.find(session)?.answered) return [];
  const { messages } = await readJson(sessionAddress(session));
  return turnsOf(messages).map(shownTurn);
}
