/** A form for the arguments of a tool, made from its schema. */

import { make } from "./elements.js";
import { fieldOf } from "./fields.js";
import { objectOf } from "./json.js";
import { choicesOf, hintsOf, resolved, sampleOf } from "./schema.js";
import { say } from "./texts.js";

/** Rows of a form, one for each argument. */
export class ArgumentsForm {
  /** @param {import("./schema.js").Schema} schema of the tool's arguments */
  constructor(schema) {
    this.schema = schema;
    this.element = make("div", "fields");
    this.reset();
  }

  /** Every field as the schema begins it. */
  reset() {
    const properties = Object.entries(this.schema.properties ?? {});
    this.fields = properties.map(([name, each]) => this.#field(name, each));
    if (this.fields.length) this.element.replaceChildren(...this.fields.map(({ row }) => row));
    else this.element.replaceChildren(say(make("p", "muted"), "noArguments"));
  }

  /** The arguments as a JSON object; what is left out is not in it. */
  read() {
    const given = this.fields.map(({ name, field }) => /** @type {[string, string]} */ ([name, field.read()]));
    return objectOf(given.filter(([, json]) => json !== undefined));
  }

  /** The schema of a required argument, with a sample as the default if it has none; the user makes the choices.
   * @param {import("./schema.js").Schema} schema resolved */
  #withSample(schema) {
    return "default" in schema || choicesOf(schema) ? schema : { ...schema, default: sampleOf(schema, this.schema) };
  }

  /** @param {string} name @param {import("./schema.js").Schema} given */
  #field(name, given) {
    const schema = resolved(given, this.schema);
    const required = Boolean(this.schema.required?.includes(name));
    const field = fieldOf(required ? this.#withSample(schema) : schema, required, this.schema);
    const id = name.replace(/\W/g, "_"); // what describes an element is named by words without spaces
    field.control.id = `argument-${id}`;
    field.control.name = name;
    const title = make("label", "field-name", make("code", "", name), " ", say(make("span", "field-need"), required ? "required" : "optional"));
    title.htmlFor = field.control.id;
    const hint = hintElement(schema);
    hint.id = `hint-${id}`;
    if (hint.childNodes.length) field.control.setAttribute("aria-describedby", hint.id);
    const parts = field.control.type === "checkbox" ? [make("div", "ticked", field.control, title), hint] : [title, field.control, hint];
    return { name, field, row: make("div", "field-row", ...parts) };
  }
}

/** @param {import("./schema.js").Schema} schema resolved */
function hintElement(schema) {
  const hints = hintsOf(schema).map(([key, values]) => say(make("span", "bound"), key, values));
  if (schema.format === "date-time") {
    hints.push(say(make("span", "bound"), "hint.zone", { zone: Intl.DateTimeFormat().resolvedOptions().timeZone }));
  }
  const described = schema.description ? [make("span", "", schema.description)] : [];
  return make("p", "hint", ...described, ...hints);
}
