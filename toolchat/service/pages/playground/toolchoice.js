/** Which tools a conversation offers to the model: all of them, or those that are ticked. */

import { find, make } from "./elements.js";
import { say, titled } from "./texts.js";

export class ToolChoice {
  constructor(folders) {
    const offered = folders.filter((folder) => folder.registered && folder.in_conversations && folder.tools.some(isOffered));
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

  #group({ name, title, tools }) {
    const boxes = tools.filter(isOffered).map((tool) => {
      const box = Object.assign(make("input"), { type: "checkbox", value: tool.name, checked: true });
      this.boxes.push(box);
      return make("label", "check", box, make("code", "", tool.name));
    });
    return make("fieldset", "", titled(make("legend", "group-title"), `folder.${name}`, title), ...boxes);
  }
}

/** Method tools are the function tools once more. */
const isOffered = (tool) => tool.kind === "function";
