/** The page: its tabs, its language, and what it asks the service first. */

import { AnswerView } from "./answer.js";
import { Compare, questionsOf } from "./compare.js";
import { Conversation } from "./conversation.js";
import { address, button, find } from "./elements.js";
import { approvalToken, beginWithKey, bearingToken } from "./key.js";
import { documentOf, wordsOf } from "./problem.js";
import { discover } from "./running.js";
import { readJson } from "./sse.js";
import { isKnown, language, text, titled, translate } from "./texts.js";
import { Tools } from "./tools.js";

const tabs = [...document.querySelectorAll('[role="tab"]')];

function select(chosen) {
  for (const tab of tabs) {
    tab.ariaSelected = String(tab === chosen);
    tab.tabIndex = tab === chosen ? 0 : -1;
    find(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
  }
  const query = new URLSearchParams(location.search);
  query.set("view", chosen.getAttribute("aria-controls"));
  history.replaceState(null, "", `?${query}`);
}

function onTabKey(event) {
  const at = tabs.indexOf(event.target);
  const places = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 };
  if (!(event.key in places)) return;
  event.preventDefault();
  const next = tabs.at(places[event.key] % tabs.length);
  select(next);
  next.focus();
}

/** Applies a choice that this browser remembers, and again when it is changed. */
function remember(control, property, apply) {
  const key = `toolchat.${control.id}`;
  control[property] = JSON.parse(localStorage.getItem(key) ?? JSON.stringify(control[property]));
  const use = () => apply(control[property]);
  control.addEventListener("change", () => { localStorage.setItem(key, JSON.stringify(control[property])); use(); });
  use();
}

/** Escape stops what is being answered, unless it closes something. */
function onEscape({ key, defaultPrevented, isComposing }) {
  if (key !== "Escape" || defaultPrevented || isComposing || document.querySelector("dialog[open], :popover-open")) return;
  for (const each of document.querySelectorAll(".stop:not([hidden])")) each.click();
}

function showModel(label) {
  const [provider, ...name] = label.split("/");
  find("model-name").textContent = name.join("/");
  titled(find("model-provider"), `provider.${provider}`, provider);
  find("model").hidden = false;
}

/** Shows the calls of an answer to another client that the address names, to be decided here. */
async function showApproval(token) {
  const identifier = new URLSearchParams(location.search).get("approval");
  if (!identifier) return;
  const approval = await readJson(address(`/approvals/${encodeURIComponent(identifier)}`), { headers: bearingToken(token) });
  const section = find("approval");
  const view = new AnswerView({ name: () => text("approvalElsewhere"), place: () => section });
  section.append(view.element);
  section.tabIndex = -1;
  section.hidden = false;
  view.wait({ ...approval, token });
  section.scrollIntoView({ block: "center" });
}

/** Shows what the service offers. */
async function show() {
  const [folders, openapi, index] = await Promise.all(["/tools", "/openapi.json", "/"].map((path) => readJson(address(path))));
  showModel(decodeURIComponent(index.chat_model));
  const longest = index.question_max_chars;
  const compare = new Compare(folders, openapi, longest);
  find("ask").disabled = false;
  const isBuiltIn = ({ name }) => isKnown(`folder.${name}`);
  const registered = compare.folders.filter((folder) => folder.registered).sort((one, other) => isBuiltIn(one) - isBuiltIn(other));
  const hasTodo = folders.some(({ name, registered }) => name === "todo" && registered);
  const planned = hasTodo ? [openapi.paths["/todo/chat"].get] : [];
  new Tools(folders);
  const conversation = new Conversation(planned.length > 0, () => [
    ...registered.map((folder) => ({ question: compare.questions(folder)[0], plan: false })),
    ...planned.map((operation) => ({ question: questionsOf(operation)[0], plan: true })),
  ], folders, longest);
  await discover();
  await conversation.restore();
}

/** Shows it, or why it cannot be shown. */
async function load() {
  const problem = find("page-problem");
  problem.hidden = true;
  try {
    // A token decides about this one approval; the rest of the page would ask for a key.
    if (linkToken) {
      for (const each of document.querySelectorAll('.tabs, [role="tabpanel"]')) each.hidden = true;
      return await showApproval(linkToken);
    }
    await show();
    await showApproval("");
  } catch (error) {
    const told = documentOf(error);
    problem.replaceChildren(...wordsOf(told));
    if (told.code === "unauthorized") problem.append(button("quiet", "keyEnter", load));
    problem.hidden = false;
    problem.scrollIntoView({ block: "center" });
  }
}

const linkToken = approvalToken();

function start() {
  history.scrollRestoration = "manual"; // a conversation is shown at its end
  beginWithKey();
  for (const tab of tabs) {
    tab.addEventListener("click", () => select(tab));
    tab.addEventListener("keydown", onTabKey);
  }
  const view = new URLSearchParams(location.search).get("view");
  select(tabs.find((tab) => tab.getAttribute("aria-controls") === view) ?? tabs[0]);
  find("language").addEventListener("click", () => translate(language() === "zh" ? "en" : "zh"));
  const root = document.documentElement;
  remember(find("theme"), "value", (theme) => { root.dataset.theme = theme; });
  remember(find("technical"), "checked", (shown) => root.classList.toggle("technical", shown));
  addEventListener("keydown", onEscape);
  document.querySelector(".key").textContent = navigator.platform.startsWith("Mac") ? "⌘ Enter" : "Ctrl Enter";
  translate();
  load();
}

start();
