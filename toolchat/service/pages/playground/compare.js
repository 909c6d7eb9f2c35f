/** The same question to no tool, a function tool and a method tool, side by side. */

import { AnswerView } from "./answer.js";
import { address, button, find, limitLength, make, namedButton, onSubmit } from "./elements.js";
import { posted } from "./sse.js";
import { language, say, text, titled } from "./texts.js";

const VARIANTS = { none: "/chat", function: "/chat-tool-function", method: "/chat-tool-method" };

const titleOf = (folder) => titled(make("span"), `folder.${folder.name}`, folder.title);

/** Whether a question is in the page's language. */
export const isRead = (question) => /\p{Script=Han}/u.test(question) === (language() === "zh");

/** The questions that a route's documentation shows: those in the page's language, if there are any. */
export function questionsOf(operation) {
  const { examples = {}, schema } = operation.parameters.find((each) => each.name === "query");
  const questions = [...new Set([schema.default, ...Object.values(examples).map((example) => example.value)])];
  const read = questions.filter(isRead);
  return read.length ? read : questions;
}

/** One of the three columns. */
class Pane {
  constructor(variant) {
    this.variant = variant;
    this.path = make("code");
    this.sandbox = say(make("span", "badge sandbox"), "sandbox");
    this.stop = button("quiet stop", "stop", () => this.view?.stop());
    this.body = make("div", "pane-body", say(make("p", "muted"), "idle"));
    const title = say(make("h2"), variant);
    const head = make("div", "pane-head", title, this.stop);
    this.where = make("p", "pane-path", this.path, this.sandbox);
    this.element = make("section", `pane ${variant}`, head, say(make("p", "muted"), `${variant}Lead`), this.where, this.body);
    this.element.tabIndex = -1;
    title.id = `pane-${variant}`;
    this.element.setAttribute("aria-labelledby", title.id);
    this.stop.hidden = this.sandbox.hidden = true;
  }

  show(folder, exists) {
    this.view?.stop();
    this.url = exists ? folder.path + VARIANTS[this.variant] : null;
    this.path.textContent = this.url ?? "";
    this.where.hidden = !exists;
    this.sandbox.hidden = true;
    this.body.replaceChildren(say(make("p", "muted"), exists ? "idle" : "noVariant"));
  }

  ask(query) {
    if (!this.url) return;
    this.view?.stop();
    const view = (this.view = new AnswerView({
      name: () => text(this.variant),
      place: () => this.element,
      onHeaders: (headers) => { this.sandbox.hidden = !headers.has("x-sandbox"); },
      onRunning: (running) => { if (view === this.view) this.stop.hidden = !running; },
    }));
    this.body.replaceChildren(view.element);
    view.run(address(this.url), posted({ query }));
  }
}

/** The question field, the folders and the panes. */
export class Compare {
  constructor(folders, openapi, longest) {
    this.paths = openapi.paths;
    this.folders = folders.filter((folder) => this.paths[`${folder.path}/chat-tool-function`] || this.paths[`${folder.path}/chat-tool-method`]);
    this.panes = Object.keys(VARIANTS).map((variant) => new Pane(variant));
    this.question = find("question");
    limitLength(this.question, find("question-limit"), longest);
    find("panes").replaceChildren(...this.panes.map((pane) => pane.element));
    onSubmit(find("compare-form"), () => this.ask());
    document.addEventListener("languagechange", () => this.#relabel());
    this.#showFolders();
    find("folders").querySelector("input:enabled")?.click();
  }

  ask() {
    const query = this.question.value.trim();
    if (query) for (const pane of this.panes) pane.ask(query);
  }

  choose(folder) {
    this.folder = folder;
    for (const pane of this.panes) pane.show(folder, Boolean(this.paths[folder.path + VARIANTS[pane.variant]]));
    this.question.value = this.prefilled = this.questions(folder)[0];
    this.#showExamples();
  }

  questions(folder) {
    return questionsOf((this.paths[`${folder.path}/chat`] ?? this.paths[`${folder.path}/chat-tool-function`]).get);
  }

  #showFolders() {
    const choices = this.folders.map((folder) => {
      const radio = make("input");
      Object.assign(radio, { type: "radio", name: "folder", value: folder.name, disabled: !folder.registered });
      radio.addEventListener("change", () => this.choose(folder));
      return make("label", "chip", radio, titleOf(folder));
    });
    find("folders").replaceChildren(...choices);
    const missing = this.folders.filter((folder) => !folder.registered);
    find("folder-reasons").replaceChildren(...missing.map((folder) => make("span", "", titleOf(folder), `: ${folder.reason}`)));
  }

  #showExamples() {
    const choices = this.questions(this.folder).map((question) => {
      return namedButton("example", question, () => { this.question.value = question; this.question.focus(); });
    });
    find("examples").replaceChildren(...choices);
  }

  /** A question that the user has not touched follows the language. */
  #relabel() {
    if (!this.folder) return;
    if (this.question.value === this.prefilled) this.question.value = this.prefilled = this.questions(this.folder)[0];
    this.#showExamples();
  }
}
