/** The page's words in two languages. */

import { ENGLISH } from "./words.en.js";
import { CHINESE } from "./words.zh.js";

export const TEXTS = { en: ENGLISH, zh: CHINESE };

const KEY = "toolchat.language";
let chosen = localStorage.getItem(KEY) ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

export function language() {
  return chosen === "zh" ? "zh" : "en";
}

export function text(key, otherwise = key, values = {}) {
  const found = TEXTS[language()][key] ?? otherwise;
  return found.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** Whether the page has a word of its own for something. */
export const isKnown = (key) => key in ENGLISH;

/** Writes a text into an element, and again when the language changes. */
export function say(element, key, values) {
  element.dataset.text = key;
  if (values) element.dataset.values = JSON.stringify(values);
  else delete element.dataset.values;
  element.textContent = text(key, key, values);
  return element;
}

/** Writes the page's own name of something into an element, else the given one. */
export function titled(element, key, title) {
  if (isKnown(key)) return say(element, key);
  delete element.dataset.text;
  element.textContent = title;
  return element;
}

/** Gives an element a name for a screen reader, in whatever language is chosen. */
export function label(element, key) {
  element.dataset.label = key;
  element.ariaLabel = text(key);
  return element;
}

/** Writes every text of the page anew; without a language, in the chosen one. */
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
