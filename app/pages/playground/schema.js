/** What a form needs to know of a JSON Schema. */

const UNION = ["anyOf", "oneOf", "allOf"];

/** A schema without references, and without the null that an optional argument may also be. */
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
    const real = parts.filter((each) => each.type !== "null");
    return real.length === 1 ? resolved({ ...real[0], ...beside }, root, depth + 1) : beside;
  }
  if (!Array.isArray(schema.type)) return schema;
  const types = schema.type.filter((each) => each !== "null");
  return { ...schema, type: types.length === 1 ? types[0] : undefined };
}

export function choicesOf(schema) {
  if ("const" in schema) return [schema.const];
  return schema.enum?.filter((each) => each !== null);
}

/** The lowest and the highest value of a number; for a whole one also where the schema tells what lies beyond. */
export function rangeOf({ type, minimum, maximum, exclusiveMinimum, exclusiveMaximum }) {
  const lows = [minimum, type === "integer" ? exclusiveMinimum + 1 : undefined].filter(Number.isFinite);
  const highs = [maximum, type === "integer" ? exclusiveMaximum - 1 : undefined].filter(Number.isFinite);
  return { low: lows.length ? Math.max(...lows) : undefined, high: highs.length ? Math.min(...highs) : undefined };
}

/** A value to begin with, as far as the schema gives one. */
export const sampleOf = (schema) => schema.default ?? schema.examples?.[0];

/** What a description does not say of a field, as keys of texts with their values; its bounds are told by the browser. */
export function hintsOf(schema) {
  const hints = [];
  if ((schema.default ?? null) !== null) hints.push(["hint.default", { value: asText(schema.default) }]);
  if (schema.examples?.length) hints.push(["hint.example", { value: asText(schema.examples[0]) }]);
  if (schema.format === "date-time") hints.push(["hint.zone", { zone: Intl.DateTimeFormat().resolvedOptions().timeZone }]);
  return hints;
}

export const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value));
