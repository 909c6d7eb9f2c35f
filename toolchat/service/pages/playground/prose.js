/** The text of an answer, shown as Markdown while it is being written. */

import { make } from "./elements.js";
import { rendered } from "./markdown.js";

/** Of the time, at most a fifth goes into showing: a long text is shown less often, and the page stays quick. */
const PAUSE = 4;

export class Prose {
  constructor(onShown = () => {}) {
    this.onShown = onShown;
    this.element = make("div", "text prose");
    this.written = "";
    this.waiting = undefined;
    this.pause = 0;
  }

  /** Writes more of it. */
  append(piece) {
    this.written += piece;
    this.waiting ??= setTimeout(() => this.#show(), this.pause);
  }

  /** Shows the whole text. */
  finish(text = this.written) {
    const asShown = text === this.shown;
    this.written = text;
    clearTimeout(this.waiting);
    if (asShown) this.waiting = undefined;
    else this.#show();
  }

  #show() {
    const began = performance.now();
    this.shown = this.written;
    this.#replace(rendered(this.written));
    this.element.getBoundingClientRect(); // what the browser needs to lay it out counts as well
    this.pause = Math.max(16, PAUSE * (performance.now() - began));
    this.waiting = undefined;
    this.onShown();
  }

  /** What stands already is left alone, and with it what is selected or has the focus. */
  #replace(nodes) {
    const standing = [...this.element.childNodes];
    const differs = nodes.findIndex((node, at) => !standing[at]?.isEqualNode(node));
    const kept = differs < 0 ? nodes.length : differs;
    for (const each of standing.slice(kept)) each.remove();
    this.element.append(...nodes.slice(kept));
  }
}
