/** What a form needs to know of a JSON Schema. */

/** @typedef {Record<string, any>} Schema */

const UNION = ["anyOf", "oneOf", "allOf"];

/** A schema without references, and without the null that an optional argument may also be.
 * @param {Schema} schema @param {Schema} root @returns {Schema} */
export function resolved(schema, root, depth = 0) {
  if (depth > 20 || typeof schema !== "object" || !schema) return {}; // true and endless references allow anything
  if (typeof schema.$ref === "string") {
    const { $ref, ...beside } = schema;
    const found = $ref.replace(/^#\//, "").split("/").reduce((at, key) => at?.[key], root);
    return resolved({ ...(found ?? {}), ...beside }, root, depth + 1);
  }
  const union = UNION.find((each) => schema[each]);
  if (union) {
    const { [union]: parts, ...beside } = schema;
    const real = parts.filter((/** @type {Schema} */ each) => each.type !== "null");
    return real.length === 1 ? resolved({ ...real[0], ...beside }, root, depth + 1) : beside;
  }
  if (!Array.isArray(schema.type)) return schema;
  const types = schema.type.filter((each) => each !== "null");
  return { ...schema, type: types.length === 1 ? types[0] : undefined };
}

/** @param {Schema} schema resolved */
export function choicesOf(schema) {
  if ("const" in schema) return [schema.const];
  return schema.enum?.filter((/** @type {any} */ each) => each !== null);
}

/** The lowest and the highest value of a number; for a whole one also where the schema tells what lies beyond.
 * @param {Schema} schema resolved */
export function rangeOf({ type, minimum, maximum, exclusiveMinimum, exclusiveMaximum }) {
  const lows = [minimum, type === "integer" ? exclusiveMinimum + 1 : undefined].filter(Number.isFinite);
  const highs = [maximum, type === "integer" ? exclusiveMaximum - 1 : undefined].filter(Number.isFinite);
  return { low: lows.length ? Math.max(...lows) : undefined, high: highs.length ? Math.min(...highs) : undefined };
}

const MOMENTS = { date: "2030-01-31", time: "07:30:00", "date-time": "2030-01-31T07:30:00Z" };

/** A value to begin with, where the schema gives none. @param {Schema} given @param {Schema} root @returns {any} */
export function sampleOf(given, root, depth = 0) {
  const schema = resolved(given, root);
  if ((schema.default ?? null) !== null) return schema.default;
  if (schema.examples?.length) return schema.examples[0];
  const choices = choicesOf(schema);
  if (choices?.length) return choices[0];
  if (depth > 4) return null;
  if (schema.type === "array") return schema.items ? [sampleOf(schema.items, root, depth + 1)] : [];
  if (schema.type === "object" || schema.properties) {
    const needed = Object.entries(schema.properties ?? {}).filter(([name]) => schema.required?.includes(name));
    return Object.fromEntries(needed.map(([name, each]) => [name, sampleOf(/** @type {Schema} */ (each), root, depth + 1)]));
  }
  return { integer: schema.minimum ?? 0, number: schema.minimum ?? 0, boolean: false, string: momentOf(schema) }[schema.type] ?? null;
}

/** @param {Schema} schema resolved */
const momentOf = ({ format }) => MOMENTS[/** @type {keyof MOMENTS} */ (format)] ?? "";

/** What a field may hold, as keys of texts with their values. @param {Schema} schema resolved @returns {[string, Record<string, any>][]} */
export function hintsOf(schema) {
  const { low, high } = rangeOf(schema);
  /** @type {[string, Record<string, any>][]} */
  const hints = [];
  const both = low !== undefined && high !== undefined;
  const described = both && [low, high].every((each) => String(schema.description ?? "").includes(String(each)));
  if (both && !described) hints.push(["hint.range", { low, high }]);
  if (!both && low !== undefined) hints.push(["hint.least", { low }]);
  if (!both && high !== undefined) hints.push(["hint.most", { high }]);
  if (schema.type === "number" && schema.exclusiveMinimum !== undefined) hints.push(["hint.above", { low: schema.exclusiveMinimum }]);
  if (schema.type === "number" && schema.exclusiveMaximum !== undefined) hints.push(["hint.below", { high: schema.exclusiveMaximum }]);
  if (schema.maxLength) hints.push(["hint.length", { high: schema.maxLength }]);
  if (schema.maxItems) hints.push(["hint.items", { high: schema.maxItems }]);
  if (schema.default !== undefined && schema.default !== null) hints.push(["hint.default", { value: asText(schema.default) }]);
  if (schema.examples?.length) hints.push(["hint.example", { value: asText(schema.examples[0]) }]);
  return hints;
}

/** @param {any} value */
export const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value));
