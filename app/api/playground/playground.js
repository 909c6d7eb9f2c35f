/** The page: its tabs, its language, and what it asks the service first. */

import { address } from "./answer.js";
import { Compare } from "./compare.js";
import { Conversation } from "./conversation.js";
import { readJson } from "./sse.js";
import { language, text, translate } from "./texts.js";

const tabs = /** @type {HTMLButtonElement[]} */ ([...document.querySelectorAll('[role="tab"]')]);

/** @param {HTMLButtonElement} chosen */
function select(chosen) {
  for (const tab of tabs) {
    tab.ariaSelected = String(tab === chosen);
    tab.tabIndex = tab === chosen ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
  }
  history.replaceState(null, "", `?view=${chosen.getAttribute("aria-controls")}`);
}

/** @param {KeyboardEvent} event */
function onTabKey(event) {
  const at = tabs.indexOf(/** @type {HTMLButtonElement} */ (event.target));
  const places = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 };
  if (!(event.key in places)) return;
  event.preventDefault();
  const next = tabs.at(places[event.key] % tabs.length);
  select(next);
  next.focus();
}

function showLanguage() {
  const button = document.getElementById("language");
  button.textContent = language() === "zh" ? "English" : "中文";
  button.lang = language() === "zh" ? "en" : "zh-CN";
}

async function start() {
  for (const tab of tabs) {
    tab.addEventListener("click", () => select(tab));
    tab.addEventListener("keydown", onTabKey);
  }
  const view = new URLSearchParams(location.search).get("view");
  select(tabs.find((tab) => tab.getAttribute("aria-controls") === view) ?? tabs[0]);
  document.addEventListener("languagechange", showLanguage);
  document.getElementById("language").addEventListener("click", () => translate(language() === "zh" ? "en" : "zh"));
  document.querySelector(".key").textContent = navigator.platform.startsWith("Mac") ? "⌘ Enter" : "Ctrl Enter";
  translate();
  try {
    const [folders, openapi, index] = await Promise.all(["/tools", "/openapi.json", "/"].map((path) => readJson(address(path))));
    const model = document.getElementById("model");
    model.textContent = index.chat_model;
    model.hidden = false;
    const compare = new Compare(folders, openapi);
    const registered = compare.folders.filter((folder) => folder.registered);
    const plans = "/todo/chat" in openapi.paths && folders.some((each) => each.name === "todo" && each.registered);
    new Conversation(plans, () => registered.map((folder) => compare.firstQuestion(folder)));
    for (const name of ["ask", "send"]) document.getElementById(name).disabled = false;
  } catch {
    const problem = document.getElementById("page-problem");
    problem.dataset.text = "advice.connection-lost";
    problem.textContent = text("advice.connection-lost");
    problem.hidden = false;
  }
}

start();
