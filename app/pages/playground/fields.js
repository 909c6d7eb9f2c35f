/** One field of a form for each kind of argument. */

import { make } from "./elements.js";
import { faultOf, pretty } from "./json.js";
import { asText, choicesOf, rangeOf, sampleOf } from "./schema.js";
import { say, text } from "./texts.js";

/** @typedef {import("./schema.js").Schema} Schema */
/**
 * @typedef {object} Field
 * @property {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} control
 * @property {() => string | undefined} read the argument as JSON; nothing where it is left out
 */

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const LONG = 200;

/** @param {Schema} schema resolved @param {boolean} required @param {Schema} root @returns {Field} */
export function fieldOf(schema, required, root) {
  if (choicesOf(schema)) return choice(schema, required);
  if (schema.type === "boolean") return tick(schema, required);
  if (schema.type === "integer" || schema.type === "number") return number(schema, required);
  if (schema.type === "string") return MOMENTS[schema.format]?.(schema, required) ?? words(schema, required);
  return json(schema, required, root);
}

/** @type {Record<string, (schema: Schema, required: boolean) => Field>} */
const MOMENTS = {
  date: (schema, required) => moment("date", schema, required),
  time: (schema, required) => moment("time", schema, required),
  "date-time": (schema, required) => moment("datetime-local", schema, required),
};

/** @param {Schema} schema @param {boolean} required @returns {Field} */
function choice(schema, required) {
  const control = /** @type {HTMLSelectElement} */ (make("select", "field"));
  control.required = required;
  const given = (schema.default ?? null) !== null;
  if (!given) control.append(say(option(""), required ? "choose" : "unset"));
  control.append(...choicesOf(schema).map((/** @type {any} */ value) => option(JSON.stringify(value), asText(value))));
  if (given) control.value = JSON.stringify(schema.default);
  return { control, read: () => control.value || undefined };
}

/** @param {string} value @param {string} [shown] */
function option(value, shown = "") {
  const made = /** @type {HTMLOptionElement} */ (make("option", "", shown));
  made.value = value;
  return made;
}

/** @param {Schema} schema @param {boolean} required @returns {Field} */
function tick(schema, required) {
  const control = input("checkbox", "tick");
  control.checked = schema.default === true;
  let touched = required || typeof schema.default === "boolean";
  control.addEventListener("change", () => { touched = true; });
  return { control, read: () => (touched ? String(control.checked) : undefined) };
}

/** @param {Schema} schema @param {boolean} required @returns {Field} */
function number(schema, required) {
  const control = input("number", "field");
  const { low, high } = rangeOf(schema);
  Object.assign(control, { required, step: schema.multipleOf ?? (schema.type === "integer" ? 1 : "any"), value: schema.default ?? "" });
  if (low !== undefined) control.min = String(low);
  if (high !== undefined) control.max = String(high);
  // As it was written, since JavaScript rounds long numbers.
  const read = () => (NUMBER.test(control.value) ? control.value : String(Number(control.value)));
  return { control, read: () => (control.value ? read() : undefined) };
}

/** @param {Schema} schema @param {boolean} required @returns {Field} */
function words(schema, required) {
  const long = schema.maxLength > LONG || schema.default?.length > LONG;
  const control = long ? make("textarea", "field") : input("text", "field");
  Object.assign(control, { required: required && schema.minLength !== 0, value: schema.default ?? "", autocomplete: "off" });
  if (schema.maxLength) control.maxLength = schema.maxLength;
  if (schema.minLength) control.minLength = schema.minLength;
  return { control, read: () => (control.value || required ? JSON.stringify(control.value) : undefined) };
}

/** @param {string} type @param {Schema} schema @param {boolean} required @returns {Field} */
function moment(type, schema, required) {
  const control = input(type, "field");
  const local = type === "datetime-local";
  Object.assign(control, { required, step: "any", value: schema.default ? (local ? inHere(schema.default) : schema.default) : "" });
  // RFC 3339 asks for the seconds, which browsers leave out, and a moment for its distance from UTC.
  const whole = () => control.value + (control.value.split(":").length === 2 ? ":00" : "");
  const read = () => JSON.stringify(local ? whole() + offset(new Date(control.value)) : whole());
  return { control, read: () => (control.value ? read() : undefined) };
}

/** A moment on the user's own clock. @param {string} told */
function inHere(told) {
  const at = new Date(told);
  if (Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** How far the user's clock is from UTC, as RFC 3339 writes it. @param {Date} at */
function offset(at) {
  const minutes = -at.getTimezoneOffset(), far = Math.abs(minutes);
  const two = (/** @type {number} */ each) => String(Math.trunc(each)).padStart(2, "0");
  return `${minutes < 0 ? "-" : "+"}${two(far / 60)}:${two(far % 60)}`;
}

/** @param {Schema} schema @param {boolean} required @param {Schema} root @returns {Field} */
function json(schema, required, root) {
  const control = /** @type {HTMLTextAreaElement} */ (make("textarea", "field json"));
  const wanted = { array: "array", object: "ofObject" }[schema.type] ?? "any";
  const sample = pretty(JSON.stringify(sampleOf(schema, root)));
  const given = schema.default !== undefined && schema.default !== null;
  Object.assign(control, { required, spellcheck: false, placeholder: sample, value: required || given ? sample : "" });
  control.addEventListener("input", () => {
    const fault = control.value.trim() && faultOf(control.value, /** @type {any} */ (wanted));
    control.setCustomValidity(fault ? text(fault[0], fault[0], fault[1]) : "");
  });
  return { control, read: () => control.value.trim() || undefined };
}

/** @param {string} type @param {string} className */
function input(type, className) {
  return Object.assign(/** @type {HTMLInputElement} */ (make("input", className)), { type });
}
