/** A form for the arguments of a tool, made from its schema. */

import { make } from "./elements.js";
import { fieldOf } from "./fields.js";
import { asText, choicesOf, resolved } from "./schema.js";
import { say } from "./texts.js";

/** Rows of a form, one for each argument. */
export class ArgumentsForm {
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
