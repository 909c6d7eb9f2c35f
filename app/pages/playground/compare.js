/** The same question to no tool, a function tool and a method tool, side by side. */

import { AnswerView } from "./answer.js";
import { address, button, find, make, questionButton } from "./elements.js";
import { language, say, text } from "./texts.js";

/** @typedef {{name: string, title: string, path: string, registered: boolean, reason?: string, tools: {name: string, kind: string}[]}} Folder */

const VARIANTS = { none: "/chat", function: "/chat-tool-function", method: "/chat-tool-method" };

/** @param {Folder} folder */
const titleOf = (folder) => text(folder.name, folder.title);

/** Whether a question is in the page's language. @param {string} question */
const isRead = (question) => /\p{Script=Han}/u.test(question) === (language() === "zh");

/** The questions that a route's documentation shows: those in the page's language, if there are any.
 * @param {any} operation @returns {string[]} */
export function questionsOf(operation) {
  const { examples = {}, schema } = operation.parameters.find((each) => each.name === "query");
  const questions = [...new Set([schema.default, ...Object.values(examples).map((example) => example.value)])];
  const read = questions.filter(isRead);
  return read.length ? read : questions;
}

/** One of the three columns. */
class Pane {
  /** @param {string} variant */
  constructor(variant) {
    this.variant = variant;
    this.path = make("code");
    this.sandbox = say(make("span", "badge sandbox"), "sandbox");
    this.stop = button("quiet", "stop", () => this.view?.stop());
    this.body = make("div", "pane-body", say(make("p", "idle"), "idle"));
    const title = say(make("h2"), variant);
    const head = make("div", "pane-head", title, this.stop);
    this.where = make("p", "pane-path", this.path, this.sandbox);
    this.element = make("section", `pane ${variant}`, head, say(make("p", "muted"), `${variant}Lead`), this.where, this.body);
    this.element.tabIndex = -1;
    title.id = `pane-${variant}`;
    this.element.setAttribute("aria-labelledby", title.id);
    this.stop.hidden = this.sandbox.hidden = true;
  }

  /** @param {Folder} folder @param {boolean} exists whether the folder has this variant */
  show(folder, exists) {
    this.view?.stop();
    this.url = exists ? folder.path + VARIANTS[this.variant] : null;
    this.path.textContent = this.url ?? "";
    this.where.hidden = !exists;
    this.sandbox.hidden = true;
    this.body.replaceChildren(say(make("p", "idle"), exists ? "idle" : "noVariant"));
  }

  /** @param {string} query */
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
    view.run(address(this.url, { query }));
  }
}

/** The question field, the folders and the panes. */
export class Compare {
  /** @param {Folder[]} folders @param {any} openapi */
  constructor(folders, openapi) {
    this.paths = openapi.paths;
    this.folders = folders.filter((folder) => this.paths[`${folder.path}/chat-tool-function`] || this.paths[`${folder.path}/chat-tool-method`]);
    this.panes = Object.keys(VARIANTS).map((variant) => new Pane(variant));
    this.question = /** @type {HTMLTextAreaElement} */ (find("question"));
    find("panes").replaceChildren(...this.panes.map((pane) => pane.element));
    find("compare-form").addEventListener("submit", (event) => { event.preventDefault(); this.ask(); });
    this.question.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find("compare-form").requestSubmit();
    });
    document.addEventListener("languagechange", () => this.#relabel());
    this.#showFolders();
    const first = this.folders.find((folder) => folder.registered);
    if (first) this.choose(first);
  }

  ask() {
    const query = this.question.value.trim();
    if (query) for (const pane of this.panes) pane.ask(query);
  }

  /** @param {Folder} folder */
  choose(folder) {
    this.folder = folder;
    for (const pane of this.panes) pane.show(folder, Boolean(this.paths[folder.path + VARIANTS[pane.variant]]));
    this.question.value = this.prefilled = this.questions(folder)[0];
    this.#showExamples();
  }

  /** @param {Folder} folder */
  questions(folder) {
    return questionsOf((this.paths[`${folder.path}/chat`] ?? this.paths[`${folder.path}/chat-tool-function`]).get);
  }

  #showFolders() {
    const choices = this.folders.map((folder, at) => {
      const radio = make("input");
      Object.assign(radio, { type: "radio", name: "folder", value: folder.name, disabled: !folder.registered });
      radio.checked = folder.registered && !this.folders.slice(0, at).some((each) => each.registered);
      radio.addEventListener("change", () => this.choose(folder));
      return make("label", "chip", radio, make("span", "", titleOf(folder)));
    });
    find("folders").replaceChildren(...choices);
    const missing = this.folders.filter((folder) => !folder.registered);
    find("folder-reasons").replaceChildren(...missing.map((folder) => make("span", "", `${titleOf(folder)}: ${folder.reason}`)));
  }

  #showExamples() {
    const choices = this.questions(this.folder).map((question) => {
      return questionButton(question, () => { this.question.value = question; this.question.focus(); });
    });
    find("examples").replaceChildren(...choices);
  }

  /** A question that the user has not touched follows the language. */
  #relabel() {
    for (const [at, label] of [...document.querySelectorAll("#folders .chip span")].entries()) label.textContent = titleOf(this.folders[at]);
    const missing = this.folders.filter((folder) => !folder.registered);
    for (const [at, reason] of [...find("folder-reasons").children].entries()) reason.textContent = `${titleOf(missing[at])}: ${missing[at].reason}`;
    if (!this.folder) return;
    if (this.question.value === this.prefilled) this.question.value = this.prefilled = this.questions(this.folder)[0];
    this.#showExamples();
  }
}
