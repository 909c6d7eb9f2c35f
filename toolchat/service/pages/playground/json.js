/** JSON whose numbers may be longer than JavaScript's: they are written as they were read. */

import { text } from "./texts.js";

/** The set of `hidden_characters.py`: what nobody sees, or what turns the direction of a text, and so would let it show another one. */
const HIDDEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e0fff}]/gu;

/** A text with every character that would be hidden written out, as JSON writes it. */
export const visible = (given) => String(given).replace(HIDDEN, (found) =>
  [...Array(found.length).keys()].map((at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""));

/** Parses JSON into what `JSON.stringify` writes with the same numbers. */
export const parsed = (json) => JSON.parse(json, (_, value, { source }) => (typeof value === "number" ? JSON.rawJSON(source) : value));

/** Reads an integer that is too long for JavaScript as it was written, so that nobody approves a rounded one. */
export const exact = (_, value, { source }) =>
  (Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(source) ? JSON.rawJSON(source) : value);

/** Indents JSON; a text that is no object or array stays as it is. */
export function pretty(json) {
  try {
    const value = parsed(json);
    return typeof value !== "object" || JSON.isRawJSON(value) ? json : visible(JSON.stringify(value, null, 2));
  } catch {
    return json;
  }
}

export function short(value) {
  const indented = pretty(typeof value === "string" ? value : JSON.stringify(value));
  return indented.length < 90 ? indented.replace(/\n\s*/g, " ") : indented;
}

/** Why a text is not an array, an object, or any JSON, whichever is wanted; empty if it is. */
export function faultOf(json, wanted) {
  try {
    const value = JSON.parse(json);
    const kind = Array.isArray(value) ? "array" : value && typeof value;
    return [kind, "any"].includes(wanted) ? "" : text(`fault.${wanted}`);
  } catch (error) {
    return text("fault.json", "", { reason: error.message });
  }
}
