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

export const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value));
