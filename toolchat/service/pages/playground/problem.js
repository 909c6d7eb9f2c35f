/** Why the service did not answer, and how the page says it. */

import { make } from "./elements.js";
import { say, text, timeAt, titled } from "./texts.js";

/** A problem document, the service's own or one made here, to be thrown. */
export class Problem extends Error {
  constructor(document) {
    super(document.detail ?? document.code);
    this.document = document;
  }
}

export const documentOf = (error) => (error instanceof Problem ? error.document : { code: "internal", detail: String(error) });

export async function problemOf(response) {
  try {
    const document = await response.json();
    const retry_after = Number(response.headers.get("retry-after")) || undefined;
    if (typeof document.code === "string") return { ...document, retry_after };
  } catch { /* a proxy's page: the status is all there is to say */ }
  return { code: "unexpected-answer", detail: `HTTP ${response.status}` };
}

export function wordsOf(document) {
  const { code, detail, retry_after: wait } = document;
  const quota = `quota.${document["violated-policies"]?.[0]}`, instead = `instead.${code}`, advice = `advice.${code}`;
  const words = [];
  // The limit is at the beginning of the service's own words, which are in English.
  if (text(quota, "")) words.push(say(make("p"), quota, { limit: parseInt(detail) }));
  else if (text(instead, "")) words.push(say(make("p"), instead));
  else if (detail) words.push(make("p", "", detail));
  if (text(advice, "")) words.push(say(make("p"), advice));
  else if (wait && wait < 100) words.push(say(make("p"), "waitFor", { seconds: wait }));
  else if (wait) words.push(say(make("p"), "waitUntil", { time: timeAt(Date.now() + wait * 1000) }));
  else if (document.retryable) words.push(say(make("p"), "advice.retry"));
  return words;
}

/** The same in short, to be said aloud. */
export const reasonOf = (document) => wordsOf(document)[0]?.textContent ?? document.code;

export function problemElement(document, what = "problem") {
  const title = document.title ? titled(make("strong"), `title.${document.code}`, document.title) : say(make("strong"), what);
  const shown = make("div", "problem", make("p", "problem-head", title, " ", make("code", "", document.code)), ...wordsOf(document));
  if (document.request_id) shown.append(say(make("p", "muted"), "requestId", { id: document.request_id }));
  return shown;
}
