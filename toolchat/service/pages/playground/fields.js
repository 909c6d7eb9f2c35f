/** One field of a form for each kind of argument. */

import { make } from "./elements.js";
import { faultOf, parsed, pretty } from "./json.js";
import { asText, choicesOf } from "./schema.js";
import { say } from "./texts.js";

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const LONG = 200;

export function fieldOf(schema, required) {
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
