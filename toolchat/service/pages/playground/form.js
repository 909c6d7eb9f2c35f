/** A form for the arguments of a tool, made from its schema. */

import { make } from "./elements.js";
import { faultOf, parsed, pretty } from "./json.js";
import { say } from "./texts.js";

export class ArgumentsForm {
  constructor(schema) {
    this.schema = schema;
    this.element = make("div", "fields");
    this.reset();
  }

  reset() {
    const properties = Object.entries(this.schema.properties ?? {});
    this.fields = properties.map(([name, each]) => this.#field(name, each));
    if (this.fields.length) this.element.replaceChildren(...this.fields.map(({ row }) => row));
    else this.element.replaceChildren(say(make("p", "muted"), "noArguments"));
  }

  /** The arguments as a JSON object; what is left out is not in it. */
  read() {
    return JSON.stringify(Object.fromEntries(this.fields.map(({ name, field }) => [name, field.read()])));
  }

  #field(name, given) {
    const schema = resolved(given, this.schema);
    const required = Boolean(this.schema.required?.includes(name));
    const field = fieldOf(required && !choicesOf(schema) ? { ...schema, default: schema.default ?? schema.examples?.[0] } : schema, required);
    const id = name.replace(/\W/g, "_"); // what describes an element is named by words without spaces
    field.control.id = `argument-${id}`;
    field.control.name = name;
    const title = make("label", "field-name", make("code", "", name), " ", say(make("span", "muted"), required ? "required" : "optional"));
    title.htmlFor = field.control.id;
    const hint = hintElement(schema);
    hint.id = `hint-${id}`;
    if (hint.childNodes.length) field.control.setAttribute("aria-describedby", hint.id);
    const parts = field.control.type === "checkbox" ? [make("div", "check", field.control, title), hint] : [title, field.control, hint];
    return { name, field, row: make("div", "field-row", ...parts) };
  }
}

/** What is known of a field; its bounds are told by the browser. */
function hintElement(schema) {
  const parts = schema.description ? [make("span", "", schema.description)] : [];
  const add = (key, value) => parts.push(say(make("span"), key, { value }));
  if ((schema.default ?? null) !== null) add("hint.default", asText(schema.default));
  if (schema.examples?.length) add("hint.example", asText(schema.examples[0]));
  if (schema.format === "date-time") add("hint.zone", Intl.DateTimeFormat().resolvedOptions().timeZone);
  return make("p", "hint", ...parts);
}

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const LONG = 200;

function fieldOf(schema, required) {
  if (choicesOf(schema)) return choice(schema, required);
  if (schema.type === "boolean") return tick(schema, required);
  if (schema.type === "integer" || schema.type === "number") return number(schema, required);
  if (schema.type === "string") return MOMENTS[schema.format] ? moment(schema, required) : words(schema, required);
  return json(schema, required);
}

const MOMENTS = { date: "date", time: "time", "date-time": "datetime-local" };

function choice(schema, required) {
  const control = make("select", "field");
  control.required = required;
  const given = (schema.default ?? null) !== null;
  if (!given) control.append(say(option(""), required ? "choose" : "unset"));
  control.append(...choicesOf(schema).map((value) => option(JSON.stringify(value), asText(value))));
  if (given) control.value = JSON.stringify(schema.default);
  return { control, read: () => (control.value ? parsed(control.value) : undefined) };
}

const option = (value, shown = "") => Object.assign(make("option", "", shown), { value });

function tick(schema, required) {
  const control = input("checkbox");
  control.checked = schema.default === true;
  let touched = required || typeof schema.default === "boolean";
  control.addEventListener("change", () => { touched = true; });
  return { control, read: () => (touched ? control.checked : undefined) };
}

function number(schema, required) {
  const control = input("number", "field");
  Object.assign(control, { required, step: schema.multipleOf ?? (schema.type === "integer" ? 1 : "any"), value: schema.default ?? "" });
  Object.assign(control, { min: schema.minimum ?? "", max: schema.maximum ?? "" });
  // As it was written, since JavaScript rounds long numbers.
  const read = () => (NUMBER.test(control.value) ? JSON.rawJSON(control.value) : Number(control.value));
  return { control, read: () => (control.value ? read() : undefined) };
}

function words(schema, required) {
  const long = schema.maxLength > LONG || schema.default?.length > LONG;
  const control = long ? make("textarea", "field") : input("text", "field");
  Object.assign(control, { required: required && schema.minLength !== 0, value: schema.default ?? "", autocomplete: "off" });
  if (schema.minLength) control.minLength = schema.minLength;
  return { control, read: () => (control.value || required ? control.value : undefined) };
}

function moment(schema, required) {
  const type = MOMENTS[schema.format];
  const control = input(type, "field");
  const local = type === "datetime-local"; // such a field cannot show a moment of another time zone
  Object.assign(control, { required, step: "any", value: (!local && schema.default) || "" });
  // RFC 3339 asks for the seconds, which browsers leave out.
  const whole = () => control.value + (control.value.split(":").length === 2 ? ":00" : "");
  const read = () => (local ? new Date(control.value).toISOString() : whole());
  return { control, read: () => (control.value ? read() : undefined) };
}

function json(schema, required) {
  const control = make("textarea", "field json");
  const wanted = ["array", "object"].includes(schema.type) ? schema.type : "any";
  const value = (schema.default ?? null) === null ? "" : pretty(JSON.stringify(schema.default));
  Object.assign(control, { required, spellcheck: false, placeholder: { array: "[]", object: "{}" }[wanted] ?? "", value });
  control.addEventListener("input", () => {
    control.setCustomValidity(control.value.trim() && faultOf(control.value, wanted));
  });
  return { control, read: () => (control.value.trim() && control.validity.valid ? parsed(control.value) : undefined) };
}

const input = (type, className = "") => Object.assign(make("input", className), { type });

const UNION = ["anyOf", "oneOf", "allOf"];

/** A schema without references, and without the null that an optional argument may also be. */
function resolved(schema, root, depth = 0) {
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

function choicesOf(schema) {
  if ("const" in schema) return [schema.const];
  return schema.enum?.filter((each) => each !== null);
}

const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value));
