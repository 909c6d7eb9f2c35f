/** The page: its tabs, its language, and what it asks the service first. */

import { Compare } from "./compare.js";
import { Conversation } from "./conversation.js";
import { address, button, find } from "./elements.js";
import { Entry, Inbox } from "./inbox.js";
import { approvalToken, beginWithKey, bearingToken } from "./key.js";
import { documentOf, wordsOf } from "./problem.js";
import { remembered } from "./remembered.js";
import { discover, watch } from "./running.js";
import { readJson } from "./sse.js";
import { language, titled, translate } from "./texts.js";
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
  const shown = tabs.filter((tab) => !tab.hidden), at = shown.indexOf(event.target);
  const places = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 };
  if (!(event.key in places)) return;
  event.preventDefault();
  const next = shown.at(places[event.key] % shown.length);
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
  find("approval").append(new Entry({ ...approval, token }).element);
  find("approval").hidden = false;
  find("approval").scrollIntoView({ block: "center" });
}

function showTools(folders, index) {
  const registered = folders.filter((folder) => folder.registered);
  const comparable = registered.filter(({ interchangeable, questions }) => interchangeable && questions.length);
  if (comparable.length) new Compare(comparable, index.question_max_chars);
  new Tools(folders);
  return new Conversation(registered, index);
}

async function show() {
  const [folders, index] = await Promise.all(["/tools", "/"].map((path) => readJson(address(path))));
  remembered.owner = index.client;
  showModel(decodeURIComponent(index.chat_model));
  const conversation = index.may_ask ? showTools(folders, index) : null;
  if (index.client) new Inbox();
  find("only-decides").hidden = index.may_ask;
  for (const tab of tabs) tab.hidden ||= !index.may_ask && tab.id !== "inbox-tab"; // what is left to a key that only decides
  if (tabs.find((tab) => tab.ariaSelected === "true").hidden) select(tabs.find((tab) => !tab.hidden));
  if (!conversation) return;
  await discover();
  watch();
  await conversation.restore();
}

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
  translate();
  load();
}

start();
