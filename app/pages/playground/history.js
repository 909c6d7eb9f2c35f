/** A conversation as the service keeps it: the turns, each with its question and its answer as an element. */

import { figures } from "./answer.js";
import { callElement } from "./calls.js";
import { make } from "./elements.js";
import { Prose } from "./prose.js";

/** The messages of each turn: a question, and what followed it. */
function turnsOf(messages) {
  const turns = [];
  for (const message of messages) {
    if (message.role === "user" || !turns.length) turns.push([]);
    turns.at(-1).push(message);
  }
  return turns;
}

/** The calls of a turn whose end does not tell them, as older versions of the service kept it. */
function askedCalls(turn) {
  const results = new Map(turn.flatMap((each) => each.responses ?? []).map(({ id, text: result }) => [id, result]));
  return turn.flatMap((each) => each.tool_calls ?? []).map((call) => ({ ...call, result: results.get(call.id) }));
}

function shownTurn(turn) {
  const answers = turn.filter((each) => each.role === "assistant");
  const ended = answers.findLast((each) => each.usage && each.model);
  const answer = answers.findLast((each) => each.text)?.text ?? "";
  const prose = new Prose();
  prose.finish(answer);
  const calls = ended ? (ended.tool_calls ?? []) : askedCalls(turn);
  const shown = make("div", "calls", ...calls.map((call) => callElement(call, false)));
  const element = make("div", "answer", shown, prose.element, make("div", "after", ...(ended ? [figures(ended)] : [])));
  return { question: turn.find((each) => each.role === "user")?.text ?? "", answer, element };
}

export const shownTurns = (messages) => turnsOf(messages).map(shownTurn);
