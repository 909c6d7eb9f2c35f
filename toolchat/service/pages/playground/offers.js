/** What a conversation begins with: questions in the language of the page, and the tools that it offers to the model. */

import { find, make, namedButton } from "./elements.js";
import { language, say, titled } from "./texts.js";

const MOST = 6, FEW = 3;

const isRead = (question) => /\p{Script=Han}/u.test(question) === (language() === "zh");

/** The questions of a tool module: those in the page's language, if there are any. */
export function questionsOf({ questions }) {
  const read = questions.filter(isRead);
  return read.length ? read : questions;
}

/** One of each module, in the order of the service; more of them where there are few. */
function chosen(folders) {
  const found = folders.map((folder) => questionsOf(folder).map((question) => ({ question, plan: folder.name === "todo" })));
  const first = found.flatMap((each) => each.slice(0, 1));
  return (first.length < FEW ? found.flat() : first).slice(0, MOST);
}

export function showStarters(folders, ask) {
  const show = () => find("starters").replaceChildren(...chosen(folders).map((starter) => choiceOf(starter, ask)));
  document.addEventListener("languagechange", show);
  show();
}

function choiceOf(starter, ask) {
  const choice = namedButton("example", starter.question, () => ask(starter));
  if (starter.plan) choice.prepend(say(make("span", "badge ok"), "todo"), " ");
  return choice;
}

export class ToolChoice {
  constructor(folders) {
    const offered = folders.filter((folder) => folder.registered && folder.in_conversations && folder.tools.length);
    this.boxes = [];
    find("tool-choices").replaceChildren(...offered.map((folder) => this.#group(folder)));
    find("choose-tools").hidden = !this.boxes.length;
    find("tool-choices").addEventListener("change", () => this.#count());
    this.#count();
  }

  /** The names of the tools to offer; nothing for all. */
  get chosen() {
    const names = this.boxes.filter((box) => box.checked).map((box) => box.value);
    return names.length === this.boxes.length ? undefined : names;
  }

  #count() {
    const { chosen } = this;
    if (chosen) say(find("tools-count"), "toolsChosen", { chosen: chosen.length, all: this.boxes.length });
    else say(find("tools-count"), "toolsAll");
  }

  #group({ name, title, tools, interchangeable }) {
    // Then the method tools are the function tools once more.
    const boxes = tools.filter(({ kind }) => kind === "function" || !interchangeable).map((tool) => {
      const box = Object.assign(make("input"), { type: "checkbox", value: tool.name, checked: true });
      this.boxes.push(box);
      return make("label", "check", box, make("code", "", tool.name));
    });
    return make("fieldset", "", titled(make("legend", "group-title"), `folder.${name}`, title), ...boxes);
  }
}
