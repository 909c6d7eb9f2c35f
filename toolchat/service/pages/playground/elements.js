/** How the page makes its elements, and where the service is. */

import { say, text } from "./texts.js";

/** Everything that the service offers lies beside this page, whatever path a proxy puts above both. */
const BASE = new URL("..", document.baseURI);

export function address(path, query = {}) {
  const url = new URL(`.${path}`, BASE);
  for (const [name, value] of Object.entries(query)) if (value) url.searchParams.set(name, value);
  return url;
}

export const sessionAddress = (session) => address(`/chat/${encodeURIComponent(session)}`);

export const find = (id) => document.getElementById(id);

/** Makes an element; texts never become markup. */
export function make(tag, className = "", ...children) {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...children);
  return element;
}

export function namedButton(className, name, action) {
  const element = make("button", className, name);
  element.type = "button";
  element.addEventListener("click", action);
  return element;
}

export const button = (className, key, action) => say(namedButton(className, "", action), key);

/** Copies what is there when it is pressed, and says so for a while. */
export function copyButton(className, key, content) {
  const copy = button(className, key, async () => {
    await copyText(content());
    say(copy, "copied");
    setTimeout(() => say(copy, key), 2000);
  });
  return copy;
}

async function copyText(copied) {
  if (navigator.clipboard) return navigator.clipboard.writeText(copied);
  // A page that came over plain HTTP from another machine has no clipboard.
  const area = make("textarea", "hidden");
  area.value = copied;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** 128 random bits; browsers make UUIDs in secure contexts alone. */
export function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((each) => each.toString(16).padStart(2, "0")).join("");
}

/** Shows how long a text is when it nears the limit of the service, and lets no longer one be sent; nothing is cut. */
export function limitLength(field, shown, longest) {
  field.addEventListener("input", () => {
    const { length } = [...field.value.trim()];
    shown.hidden = length < 0.8 * longest;
    shown.classList.toggle("over", length > longest);
    say(shown, "lengthOf", { length: length.toLocaleString("en"), longest: longest.toLocaleString("en") });
    field.setCustomValidity(length > longest ? shown.textContent : "");
  });
}

/** Acts on Enter; Shift and Enter begin a line, and Enter that ends the writing of Chinese characters does not count. */
export function onEnter(field, action) {
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    action();
  });
}

/** Acts when a form is sent: by its button, or by Enter together with Control or Command. */
export function onSubmit(form, action) {
  form.addEventListener("submit", (event) => { event.preventDefault(); action(); });
  form.addEventListener("keydown", ({ key, ctrlKey, metaKey, defaultPrevented }) => {
    if (key === "Enter" && (ctrlKey || metaKey) && !defaultPrevented) form.requestSubmit();
  });
}

export function replaceButton(hidden, shown, next = shown) {
  const focused = [hidden, shown].includes(document.activeElement);
  hidden.hidden = true;
  shown.hidden = false;
  if (focused) next.focus({ preventScroll: true });
}

/** The end of the page, which it follows unless its reader has scrolled up. */
export class PageEnd {
  constructor(section) {
    this.section = section;
    this.follows = false;
    addEventListener("scroll", () => { this.follows = innerHeight + scrollY > document.documentElement.scrollHeight - 80; });
  }

  follow() {
    if (this.follows && !this.section.hidden) scrollTo(0, document.documentElement.scrollHeight);
  }
}

export function announce(key, values = {}) {
  find("announcer").textContent = text(key, key, values);
}
