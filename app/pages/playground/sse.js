/** Questions to the service, answered as server-sent events. */

import { fetchWithKey } from "./key.js";
import { Problem, problemOf } from "./problem.js";

const JSON_HEADERS = { "Content-Type": "application/json" };

/** A request that sends a document; questions go this way, since a URL is too short for a long one. */
export const posted = (document) => ({ method: "POST", headers: JSON_HEADERS, body: JSON.stringify(document) });

/** Makes a reader of an event stream that is fed piece by piece, cut anywhere, and gives the events that a piece completes. */
export function eventReader() {
  let rest = "";
  return (piece) => {
    const blocks = (rest + piece).replaceAll("\r\n", "\n").split("\n\n");
    rest = blocks.pop();
    return blocks.map(eventOf).filter(({ data }) => data);
  };
}

function eventOf(block) {
  const fields = block.split("\n").map((line) => /^(event|data): ?(.*)$/.exec(line) ?? []);
  const values = (wanted) => fields.filter(([, name]) => name === wanted).map(([, , value]) => value);
  return { event: values("event").at(-1) ?? "message", data: values("data").join("\n") };
}

/** Asks, and gives the events of the answer as they come; throws a {@link Problem} unless the answer has an end. */
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
  let ended = false;
  for (;;) {
    const { value, done } = await orLost(reader.read(), init.signal, requestId);
    if (done && ended) return;
    if (done) throw new Problem({ code: "connection-lost", request_id: requestId });
    for (const { event, data } of read(value)) {
      ended ||= event === "done" || event === "error";
      yield { event, data: JSON.parse(data) };
    }
  }
}

/** Reads a JSON document of the service; nothing for an answer without a body. */
export async function readJson(url, init = {}) {
  const response = await orLost(fetchWithKey(url, init), init.signal);
  if (!response.ok) throw new Problem(await problemOf(response));
  return response.status === 204 ? undefined : response.json();
}

async function orLost(promise, signal, request_id) {
  try {
    return await promise;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem({ code: "connection-lost", request_id });
  }
}
