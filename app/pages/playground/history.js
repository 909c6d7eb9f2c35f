/** A conversation as the service keeps it, as turns on the page. */

import { figures } from "./answer.js";
import { callElement } from "./calls.js";
import { make } from "./elements.js";
import { Prose } from "./prose.js";

/**
 * @typedef {{role: string, text?: string, tool_calls?: any[], responses?: {id: string, text: string}[],
 *   usage?: any, model?: any, duration_ms?: number}} Message
 */

/** The calls of a turn whose end does not tell them, as older versions of the service kept it. @param {Message[]} turn */
function askedCalls(turn) {
  const results = new Map(turn.flatMap((each) => each.responses ?? []).map(({ id, text: result }) => [id, result]));
  return turn.flatMap((each) => each.tool_calls ?? []).map((call) => ({ ...call, result: results.get(call.id) }));
}

/** The messages of each turn: a question, and what followed it. @param {Message[]} messages */
function turnsOf(messages) {
  /** @type {Message[][]} */
  const turns = [];
  for (const message of messages) {
    if (message.role === "user" || !turns.length) turns.push([]);
    turns.at(-1).push(message);
  }
  return turns;
}

/** @param {Message[]} turn @returns {["user" | "assistant", HTMLElement][]} */
function shownTurn(turn) {
  const questions = turn.filter((each) => each.role === "user");
  const answers = turn.filter((each) => each.role === "assistant");
  const ended = answers.findLast((each) => each.usage && each.model);
  const calls = ended ? (ended.tool_calls ?? []) : askedCalls(turn);
  const prose = new Prose();
  prose.finish(answers.findLast((each) => each.text)?.text ?? "");
  const after = ended ? [figures(/** @type {any} */ (ended))] : [];
  const shown = make("div", "calls", ...calls.map((call) => callElement(call, false)));
  const answer = make("div", "answer", shown, prose.element, make("div", "after", ...after));
  return [
    ...questions.map((each) => /** @type {["user", HTMLElement]} */ (["user", make("div", "text", each.text ?? "")])),
    ...(answers.length ? [/** @type {["assistant", HTMLElement]} */ (["assistant", answer])] : []),
  ];
}

/** @param {Message[]} messages */
export const shownTurns = (messages) => turnsOf(messages).flatMap(shownTurn);
