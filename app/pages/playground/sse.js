/** Questions to the service, answered as server-sent events. */

import { fetchWithKey } from "./key.js";
import { Problem, problemOf } from "./problem.js";

/** @typedef {{event: string, data: string, id: string}} ServerSentEvent */

/**
 * Makes a reader of an event stream (WHATWG HTML, section 9.2.6) that is fed piece by piece, cut anywhere.
 * @returns {(piece: string) => ServerSentEvent[]} gives the events that a piece completes
 */
export function eventReader() {
  let rest = "", afterReturn = false, id = "", event = "", /** @type {string[]} */ data = [];

  function take(/** @type {string} */ line) {
    const [, name, value] = /^([^:]*)(?:: ?)?([^]*)$/.exec(line);
    if (name === "data") data.push(value);
    else if (name === "event") event = value;
    else if (name === "id" && !value.includes("\0")) id = value;
  }

  function dispatch() {
    const found = data.length ? [{ event: event || "message", data: data.join("\n"), id }] : [];
    event = "";
    data = [];
    return found;
  }

  return (piece) => {
    if (!piece) return [];
    const lines = (rest + (afterReturn && piece[0] === "\n" ? piece.slice(1) : piece)).split(/\r\n|\r|\n/);
    afterReturn = piece.endsWith("\r");
    rest = lines.pop();
    return lines.flatMap((line) => (line ? (take(line), []) : dispatch()));
  };
}

/**
 * Asks, and gives the events of the answer as they come.
 * @param {string | URL} url
 * @param {RequestInit} init `signal` ends the request, and with it the work of the service
 * @param {(headers: Headers) => void} onHeaders
 * @returns {AsyncGenerator<{event: string, data: any}>}
 * @throws {Problem} the service refused, or the connection was lost
 */
export async function* ask(url, init, onHeaders) {
  const headers = { Accept: "text/event-stream", ...init.headers };
  const response = await orLost(fetchWithKey(url, { ...init, headers }), init.signal);
  if (!response.ok) throw new Problem(await problemOf(response));
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
    throw new Problem({ code: "unexpected-answer", detail: `HTTP ${response.status}` });
  }
  onHeaders(response.headers);
  const requestId = response.headers.get("x-request-id") ?? "";
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const read = eventReader();
  for (;;) {
    const { value, done } = await orLost(reader.read(), init.signal, requestId);
    if (done) return;
    for (const { event, data } of read(value)) yield { event, data: JSON.parse(data) };
  }
}

/**
 * Reads a JSON document of the service.
 * @param {string | URL} url
 * @param {RequestInit} init
 * @returns {Promise<any>} nothing for an answer without a body
 */
export async function readJson(url, init = {}) {
  const response = await orLost(fetchWithKey(url, init), init.signal);
  if (!response.ok) throw new Problem(await problemOf(response));
  return response.status === 204 ? undefined : response.json();
}

/** @template T @param {Promise<T>} promise @param {AbortSignal | null} [signal] @param {string} [request_id] */
async function orLost(promise, signal, request_id) {
  try {
    return await promise;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem({ code: "connection-lost", request_id });
  }
}
