/** The same question to no tool, a function tool and a method tool, side by side. */

import { AnswerView } from "./answer.js";
import { address, find, limitLength, make, onSubmit } from "./elements.js";
import { questionsOf } from "./offers.js";
import { posted } from "./sse.js";
import { say, text, titled } from "./texts.js";

const VARIANTS = { none: "/chat", function: "/chat-tool-function", method: "/chat-tool-method" };

class Pane {
  constructor(variant) {
    this.variant = variant;
    this.element = find(`pane-${variant}`);
    const [path, sandbox, stop, body] = ["code", ".sandbox", ".stop", ".pane-body"].map((part) => this.element.querySelector(part));
    Object.assign(this, { path, sandbox, stop, body });
    stop.addEventListener("click", () => this.view?.stop());
  }

  show(folder) {
    this.view?.stop();
    this.url = this.path.textContent = folder.path + VARIANTS[this.variant];
    this.sandbox.hidden = true;
    this.body.replaceChildren(say(make("p", "muted"), "idle"));
  }

  ask(query) {
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

export class Compare {
  constructor(folders, longest) {
    this.panes = Object.keys(VARIANTS).map((variant) => new Pane(variant));
    this.question = find("question");
    limitLength(this.question, find("question-limit"), longest);
    onSubmit(find("compare-form"), () => this.ask());
    document.addEventListener("languagechange", () => this.#prefill());
    find("folders").replaceChildren(...folders.map((folder) => this.#choice(folder)));
    find("folders").querySelector("input").click();
    find("compare-tab").hidden = find("ask").disabled = false;
  }

  ask() {
    const query = this.question.value.trim();
    if (query) for (const pane of this.panes) pane.ask(query);
  }

  #choose(folder) {
    this.folder = folder;
    for (const pane of this.panes) pane.show(folder);
    this.prefilled = this.question.value;
    this.#prefill();
  }

  #choice(folder) {
    const radio = Object.assign(make("input"), { type: "radio", name: "folder", value: folder.name });
    radio.addEventListener("change", () => this.#choose(folder));
    return make("label", "chip", radio, titled(make("span"), `folder.${folder.name}`, folder.title));
  }

  /** A question that the user has not touched follows the language. */
  #prefill() {
    if (this.question.value === this.prefilled) [this.question.value] = [this.prefilled] = questionsOf(this.folder);
  }
}
