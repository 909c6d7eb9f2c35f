/** Questions to the service, answered as server-sent events. */

import { address } from "./elements.js";
import { exact } from "./json.js";
import { fetchWithKey } from "./key.js";
import { Problem, problemOf } from "./problem.js";

const LAST = ["done", "error", "cancelled"];
const MOST_LOSSES = 5;
const HEADERS = { "Content-Type": "application/json", Prefer: "respond-async" };

/** A request that sends a question; a URL is too short for a long one. The answer of a session outlives the page. */
export const posted = (document) => ({ method: "POST", headers: HEADERS, body: JSON.stringify(document) });

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
  const fields = block.split("\n").map((line) => /^(id|event|data): ?(.*)$/.exec(line) ?? []);
  const values = (wanted) => fields.filter(([, name]) => name === wanted).map(([, , value]) => value);
  return { id: values("id").at(-1), event: values("event").at(-1) ?? "message", data: values("data").join("\n") };
}

/** Asks, and gives the events of the answer as they come; throws a {@link Problem} unless the answer has an end.
 *
 * An answer in the background has an address of its own, where it is continued if the connection is lost. */
export async function* ask(url, init, onHeaders) {
  let place, last, losses = 0;
  const begun = (headers) => { place = questionIn(headers); onHeaders(headers); };
  for (;;) {
    try {
      const again = { signal: init.signal, headers: last ? { "Last-Event-ID": last } : {} };
      for await (const { id, ...event } of place ? read(place, again, begun) : read(url, init, begun)) {
        // An error without an id is not the question's: its events could not be read.
        if (place && event.event === "error" && !id) throw new Problem(event.data);
        [last, losses] = [id ?? last, 0];
        yield event;
      }
      return;
    } catch (error) {
      // A service that restarts, or a proxy before it, may also answer with a problem that passes.
      const isPassing = error.document && (error.document.retryable ?? true);
      if (!place || init.signal?.aborted || !isPassing || ++losses > MOST_LOSSES) throw error;
      yield { event: "reconnecting" };
      await new Promise((resolve) => setTimeout(resolve, 1000 * losses));
    }
  }
}

/** The address of the question in the background that an answer belongs to, if it does. */
export function questionIn(headers) {
  return headers.has("location") ? address(`/questions/${headers.get("location").split("/").at(-1)}`) : null;
}

async function* read(url, init, onHeaders) {
  const headers = { Accept: "text/event-stream", ...init.headers };
  const response = await orLost(fetchWithKey(url, { ...init, headers }), init.signal);
  if (!response.ok) throw new Problem(await problemOf(response));
  if (response.status === 202 && response.headers.get("location")?.startsWith("/approvals/")) {
    return yield { event: "approval", data: await bodyOf(response) };
  }
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
    throw new Problem({ code: "unexpected-answer", detail: `HTTP ${response.status}` });
  }
  onHeaders(response.headers);
  const requestId = response.headers.get("x-request-id") ?? "";
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const eventsIn = eventReader();
  let ended = false;
  for (;;) {
    const { value, done } = await orLost(reader.read(), init.signal, requestId);
    if (done && ended) return;
    if (done) throw new Problem({ code: "connection-lost", request_id: requestId });
    for (const { id, event, data } of eventsIn(value)) {
      ended ||= LAST.includes(event);
      yield { id, event, data: JSON.parse(data, exact) };
    }
  }
}

/** Reads a JSON document of the service; nothing for an answer without a body. */
export async function readJson(url, init = {}) {
  const response = await orLost(fetchWithKey(url, init), init.signal);
  if (!response.ok) throw new Problem(await problemOf(response));
  return response.status === 204 ? undefined : bodyOf(response);
}

const bodyOf = async (response) => JSON.parse(await response.text(), exact);

async function orLost(promise, signal, request_id) {
  try {
    return await promise;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem({ code: "connection-lost", request_id });
  }
}
