/** A conversation as the service keeps it, as turns on the page. */

import { figures } from "./answer.js";
import { callElement } from "./calls.js";
import { make } from "./elements.js";
import { Prose } from "./prose.js";

/**
 * @typedef {{role: string, text?: string, tool_calls?: any[], responses?: {id: string, text: string, sandbox?: boolean}[],
 *   usage?: any, model?: any, duration_ms?: number}} Message
 */

/** What the tools answered, by the calls' ids. @param {Message[]} messages */
function resultsOf(messages) {
  const responses = messages.flatMap((each) => each.responses ?? []);
  return new Map(responses.map(({ id, text: result, sandbox }) => [id, { result, sandbox }]));
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
  const results = resultsOf(turn);
  const questions = turn.filter((each) => each.role === "user");
  const answers = turn.filter((each) => each.role === "assistant");
  const calls = answers.flatMap((each) => each.tool_calls ?? []).map((call) => callElement({ ...results.get(call.id), ...call }, false));
  const prose = new Prose();
  prose.finish(answers.map((each) => each.text).filter(Boolean).join("\n\n"));
  const after = answers.filter((each) => each.usage && each.model && each.duration_ms !== undefined).slice(-1).map(figures);
  const answer = make("div", "answer", make("div", "calls", ...calls), prose.element, make("div", "after", ...after));
  return [
    ...questions.map((each) => /** @type {["user", HTMLElement]} */ (["user", make("div", "text", each.text ?? "")])),
    ...(answers.length ? [/** @type {["assistant", HTMLElement]} */ (["assistant", answer])] : []),
  ];
}

/** @param {Message[]} messages */
export const shownTurns = (messages) => turnsOf(messages).flatMap(shownTurn);
