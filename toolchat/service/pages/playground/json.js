/** JSON whose numbers may be longer than JavaScript's: they are written as they were read. */

import { text } from "./texts.js";

/** Marks that turn the direction of a text, and would let it show another one than it is: written out, as JSON allows. */
const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Parses JSON into what `JSON.stringify` writes with the same numbers. */
export const parsed = (json) => JSON.parse(json, (_, value, { source }) => (typeof value === "number" ? JSON.rawJSON(source) : value));

/** Indents JSON; a text that is no object or array stays as it is. */
export function pretty(json) {
  try {
    const value = parsed(json);
    if (typeof value !== "object" || JSON.isRawJSON(value)) return json;
    return JSON.stringify(value, null, 2).replace(TURNING, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);
  } catch {
    return json;
  }
}

/** On one line where there is room for it. */
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
