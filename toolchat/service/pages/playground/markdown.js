/** Markdown of a model, which is foreign text, as elements that can do no harm, also while it is being written. */

import { copyButton, make } from "./elements.js";
import { label } from "./texts.js";
import "./vendor/dompurify.js"; // the publisher's smallest build is no module: it defines DOMPurify
import { Marked } from "./vendor/marked.js";

/** Characters that are read as Markdown; a longer text is shown as it is. */
export const MOST_MARKDOWN = 50_000;

/** The time to pair the marks of emphasis in a paragraph grows with their square: so much of it a text may have. */
const MOST_PAIRS = 1_500_000;

const TAGS = ["a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p",
  "pre", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"];

const escaped = (text) => text.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`);

/** Deeper quotations and lists would exhaust the stack long before a reader. */
const NESTED = /^(?:[ \t]*(?:>|[-*+]|\d{1,9}[.)])){50}/m;

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // Markup stays text, but for the line break, which is all that a cell of a table has.
    html: ({ text }) => (/^<br\s*\/?>$/i.test(text.trim()) ? "<br>" : escaped(text)),
    // A picture would tell another host who reads this, and when: what it shows is named instead.
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

/** Markup without anything that acts, loads or looks like a part of the page. */
export function sanitized(markup) {
  const fragment = DOMPurify.sanitize(markup, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", "align", "start"],
    ADD_URI_SAFE_ATTR: ["align", "start"],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
    RETURN_DOM_FRAGMENT: true,
  });
  fragment.querySelectorAll("a").forEach(secure);
  return fragment;
}

function takesLong(text) {
  if (text.length > MOST_MARKDOWN || NESTED.test(text)) return true;
  const marks = text.split(/\n\s*\n/).map((paragraph) => paragraph.match(/[*_~]+/g)?.length ?? 0);
  return marks.reduce((pairs, each) => pairs + each * each, 0) > MOST_PAIRS;
}

export function rendered(text) {
  if (takesLong(text)) return plain(text);
  let fragment;
  try {
    fragment = sanitized(marked.parse(text));
  } catch {
    return plain(text);
  }
  fragment.querySelectorAll("pre").forEach(copyable);
  fragment.querySelectorAll("table").forEach(scrollable);
  for (const item of fragment.querySelectorAll("li")) item.classList.toggle("task", /^\s*[☑☐]/.test(item.textContent));
  lower(fragment.querySelectorAll("h1, h2, h3, h4, h5, h6"));
  return [...fragment.childNodes];
}

const plain = (text) => [make("div", "plain", text)];

/** A link opens elsewhere and tells nothing; one to this service could set something going, so it stays text. */
function secure(link) {
  const safe = URL.canParse(link.href) && new URL(link.href).origin !== location.origin;
  if (!link.hasAttribute("href") || !safe) return link.replaceWith(...link.childNodes);
  link.target = "_blank";
  link.rel = "noopener noreferrer nofollow";
  link.referrerPolicy = "no-referrer";
}

function copyable(code) {
  code.tabIndex = 0;
  const framed = make("div", "code-block");
  code.replaceWith(framed);
  framed.append(code, copyButton("quiet copy", "copy", () => code.textContent));
}

function scrollable(table) {
  const framed = label(make("div", "table"), "table");
  framed.tabIndex = 0;
  framed.role = "group";
  table.replaceWith(framed);
  framed.append(table);
}

/** The page has its own headings; an answer's stand below them, without a step left out. */
function lower(headings) {
  let rank = 2;
  for (const heading of headings) {
    rank = Math.min(6, rank + 1, Number(heading.localName[1]) + 2);
    heading.replaceWith(make(`h${rank}`, heading.localName, ...heading.childNodes));
  }
}

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

  append(piece) {
    this.written += piece;
    this.waiting ??= setTimeout(() => this.#show(), this.pause);
  }

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
