/** A conversation as the service keeps it: the turns, each with its question and its answer as an element. */

import { figures } from "./answer.js";
import { callElement } from "./calls.js";
import { address, make } from "./elements.js";
import { Prose } from "./prose.js";
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
  const prose = new Prose();
  prose.finish(answer);
  const shown = make("div", "calls", ...(ended?.tool_calls ?? []).map((call) => callElement(call, false)));
  const element = make("div", "answer", shown, prose.element, make("div", "after", ...(ended ? [figures(ended)] : [])));
  return { question: turn.find((each) => each.role === "user")?.text ?? "", answer, element, plan: false, answered: true };
}

/** The turns of a session that the service has answered before. */
export async function storedTurns(session) {
  if (!remembered.find(session)?.answered) return [];
  const { messages } = await readJson(address(`/chat/${encodeURIComponent(session)}`));
  return turnsOf(messages).map(shownTurn);
}
