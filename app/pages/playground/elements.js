/** How the page makes its elements, and where the service is. */

import { say, text } from "./texts.js";

/** Everything that the service offers lies beside this page, whatever path a proxy puts above both. */
const BASE = new URL("..", document.baseURI);

/** @param {string} path begins with a slash @param {Record<string, string>} [query] */
export function address(path, query = {}) {
  const url = new URL(`.${path}`, BASE);
  for (const [name, value] of Object.entries(query)) if (value) url.searchParams.set(name, value);
  return url;
}

/** @param {string} id */
export const find = (id) => document.getElementById(id);

/** Makes an element; texts never become markup.
 * @param {string} tag @param {string} className @param {...(Node | string)} children @returns {HTMLElement} */
export function make(tag, className = "", ...children) {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...children);
  return element;
}

/** @param {string} className @param {string} key @param {() => void} action */
export function button(className, key, action) {
  const element = say(make("button", className), key);
  element.type = "button";
  element.addEventListener("click", action);
  return element;
}

/** Copies what is there when it is pressed, and says so for a while.
 * @param {string} className @param {string} key @param {() => string} content */
export function copyButton(className, key, content) {
  const copy = button(className, key, async () => {
    await copyText(content());
    say(copy, "copied");
    setTimeout(() => say(copy, key), 2000);
  });
  return copy;
}

/** @param {string} copied */
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

/** A question to choose. @param {string} question @param {() => void} action */
export function questionButton(question, action) {
  const choice = button("example", "ask", action);
  delete choice.dataset.text;
  choice.textContent = question;
  return choice;
}

/** Tells users of a screen reader, once, when something has ended. @param {string} key @param {object} values */
export function announce(key, values = {}) {
  find("announcer").textContent = text(key, key, values);
}
