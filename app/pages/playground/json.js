/** JSON as text, whose numbers may be longer than JavaScript's: they are never read and written anew. */

/** Marks that turn the direction of a text, and would let it show another one than it is: written out, as JSON allows. */
const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const plain = (text) => JSON.stringify(text).replace(TURNING, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Indents JSON. */
export function pretty(json) {
  try {
    if (typeof JSON.parse(json) !== "object") return json;
  } catch {
    return json;
  }
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|[^\s{}[\],:"]+|[{}[\],:]/g);
  let depth = 0;
  const line = () => "\n" + "  ".repeat(depth);
  return tokens.map((token, at) => {
    const before = tokens[at - 1], after = tokens[at + 1];
    if ("{[".includes(token)) return depth++, "}]".includes(after) ? token : token + line();
    if ("}]".includes(token)) return depth--, "{[".includes(before) ? token : line() + token;
    if (token === ",") return token + line();
    return token === ":" ? ": " : token[0] === '"' ? plain(JSON.parse(token)) : token;
  }).join("");
}

/** On one line where there is room for it. */
export function short(value) {
  const indented = pretty(typeof value === "string" ? value : JSON.stringify(value));
  return indented.length < 90 ? indented.replace(/\n\s*/g, " ") : indented;
}

/** An object of members that are JSON already. */
export const objectOf = (members) => `{${members.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(",")}}`;

/** Why a text is not the JSON that is wanted: the key of a text, and what belongs into it. */
export function faultOf(json, wanted) {
  try {
    const value = JSON.parse(json);
    const kind = Array.isArray(value) ? "array" : value && typeof value === "object" ? "object" : "other";
    return wanted === "any" || kind === (wanted === "ofObject" ? "object" : wanted) ? null : [`fault.${wanted}`, {}];
  } catch (error) {
    return ["fault.json", { reason: error.message }];
  }
}
