/** The page's words in two languages; the English ones of its markup stand in the markup. */

import { ENGLISH } from "./words.en.js";
import { CHINESE } from "./words.zh.js";

export const TEXTS = { en: ENGLISH, zh: CHINESE };

/** Where an element shows a word, by the attribute that names it. */
const PLACES = Object.entries({ text: "textContent", label: "ariaLabel", placeholder: "placeholder" });

function* shownWords() {
  for (const [attribute, property] of PLACES) {
    for (const element of document.querySelectorAll(`[data-${attribute}]`)) yield { element, key: element.dataset[attribute], property };
  }
}

for (const { element, key, property } of shownWords()) ENGLISH[key] ??= element[property];

const KEY = "toolchat.language";
let chosen = localStorage.getItem(KEY) ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

export function language() {
  return chosen === "zh" ? "zh" : "en";
}

export function text(key, otherwise = key, values = {}) {
  const found = TEXTS[language()][key] ?? otherwise;
  return found.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** A moment in the language of the page: the time of day, and the date unless it is today. */
export function timeAt(milliseconds) {
  const moment = new Date(milliseconds), isToday = moment.toDateString() === new Date().toDateString();
  return moment.toLocaleString(language() === "zh" ? "zh-CN" : "en-GB", { timeStyle: "short", dateStyle: isToday ? undefined : "medium" });
}

export function say(element, key, values) {
  element.dataset.text = key;
  if (values) element.dataset.values = JSON.stringify(values);
  else delete element.dataset.values;
  element.textContent = text(key, key, values);
  return element;
}

/** Writes the page's own name of something into an element, else the given one. */
export function titled(element, key, title) {
  if (key in ENGLISH) return say(element, key);
  delete element.dataset.text;
  element.textContent = title;
  return element;
}

export function label(element, key) {
  element.dataset.label = key;
  element.ariaLabel = text(key);
  return element;
}

/** Writes every text of the page anew; without a language, in the chosen one. */
export function translate(name) {
  if (name) localStorage.setItem(KEY, (chosen = name));
  document.documentElement.lang = language() === "zh" ? "zh-CN" : "en";
  for (const { element, key, property } of shownWords()) {
    element[property] = text(key, element[property], JSON.parse(element.dataset.values ?? "{}"));
  }
  document.dispatchEvent(new Event("languagechange"));
}
