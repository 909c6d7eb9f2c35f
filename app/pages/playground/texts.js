/** The page's words in two languages. */

import { ENGLISH } from "./words.en.js";
import { CHINESE } from "./words.zh.js";

export const TEXTS = { en: ENGLISH, zh: CHINESE };

const KEY = "toolchat.language";
let chosen = localStorage.getItem(KEY) ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

/** @returns {"en" | "zh"} */
export function language() {
  return chosen === "zh" ? "zh" : "en";
}

/** @param {string} key @param {string} [otherwise] the text when there is none of this key */
export function text(key, otherwise = key, values = {}) {
  const found = TEXTS[language()][key] ?? otherwise;
  return found.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** Whether the page has a word of its own for something. @param {string} key */
export const isKnown = (key) => key in ENGLISH;

/** Writes a text into an element, and again when the language changes.
 * @template {HTMLElement} T @param {T} element @param {string} key @param {Record<string, unknown>} [values] @returns {T} */
export function say(element, key, values) {
  element.dataset.text = key;
  if (values) element.dataset.values = JSON.stringify(values);
  else delete element.dataset.values;
  element.textContent = text(key, key, values);
  return element;
}

/** Gives an element a name for a screen reader, in whatever language is chosen.
 * @template {HTMLElement} T @param {T} element @param {string} key @returns {T} */
export function label(element, key) {
  element.dataset.label = key;
  element.ariaLabel = text(key);
  return element;
}

/** Writes every text of the page anew; without a language, in the chosen one. @param {string} [name] */
export function translate(name) {
  if (name) localStorage.setItem(KEY, (chosen = name));
  document.documentElement.lang = language() === "zh" ? "zh-CN" : "en";
  for (const each of document.querySelectorAll("[data-text]")) {
    each.textContent = text(each.dataset.text, each.textContent, JSON.parse(each.dataset.values ?? "{}"));
  }
  for (const each of document.querySelectorAll("[data-placeholder]")) each.placeholder = text(each.dataset.placeholder);
  for (const each of document.querySelectorAll("[data-label]")) each.ariaLabel = text(each.dataset.label);
  document.dispatchEvent(new Event("languagechange"));
}
