/** Every tool of the service, with a form that runs it. */

import { button, copyButton, find, make, namedButton, newKey, onSubmit, replaceButton } from "./elements.js";
import { ArgumentsForm } from "./form.js";
import { heldKey } from "./key.js";
import { remembered } from "./remembered.js";
import { asCurl, requestOf, runView } from "./run.js";
import { say, titled } from "./texts.js";

const MOST_RUNS = 20;

/** One tool: what it is, its form, and what its runs gave. */
class ToolPanel {
  constructor(tool) {
    this.tool = tool;
    this.form = new ArgumentsForm(tool.input_schema);
    this.key = newKey();
    this.runs = make("div", "runs");
    this.empty = say(make("p", "muted"), "runsEmpty");
    this.runButton = say(make("button", "primary"), "run");
    this.stopButton = button("primary stop", "stop", () => this.running?.stop());
    this.stopButton.hidden = true;
    this.element = make("article", "tool", this.#head(), this.#arguments(),
      make("section", "results", say(make("h3"), "runs"), this.empty, this.runs));
  }

  #head() {
    const { name, kind, description, sandbox, requires_approval: consent } = this.tool;
    const title = make("h2", "", make("code", "", name));
    title.id = "tool-title";
    const badges = make("p", "badges", say(make("span", "badge"), `kind.${kind}`));
    if (consent) badges.append(say(make("span", "badge sandbox"), "consentBadge"));
    if (sandbox) badges.append(say(make("span", "badge sandbox"), "sandbox"));
    const head = make("header", "tool-head", make("div", "tool-title", title, badges), make("p", "tool-text", description));
    if (consent) head.append(say(make("p", "consent-note"), "consentNote"));
    return head;
  }

  #arguments() {
    const again = button("plain-button", "reset", () => this.form.reset());
    const curl = copyButton("plain-button", "curl", () => asCurl(this.#request(newKey())));
    const more = this.form.fields.length ? [again, curl] : [curl];
    const foot = make("div", "tool-foot", this.runButton, this.stopButton, make("span", "more", ...more));
    const form = make("form", "tool-form", this.form.element, foot);
    onSubmit(form, () => this.run());
    // Another wish is another run; the same one, asked again after a lost connection, is not.
    form.addEventListener("input", () => { this.key = newKey(); });
    return form;
  }

  #request(key) {
    return requestOf(this.tool.name, this.form.read(), remembered.session, this.tool.requires_approval ? key : "");
  }

  async run() {
    if (this.running) return;
    const run = (this.running = runView(this.tool.name));
    this.empty.hidden = true;
    this.runs.prepend(run.element);
    for (const old of [...this.runs.children].slice(MOST_RUNS)) old.remove();
    replaceButton(this.runButton, this.stopButton);
    run.element.scrollIntoView({ block: "nearest" });
    const { url, init } = this.#request(this.key);
    await run.run(url, init);
    if (run.settled) this.key = newKey();
    this.running = undefined;
    replaceButton(this.stopButton, this.runButton);
  }
}

/** The list of tools, and the one that is chosen. */
export class Tools {
  constructor(folders) {
    find("tenant-row").hidden = Boolean(heldKey()); // a key has a tenant of its own
    this.folders = folders.filter((folder) => folder.tools.length || !folder.registered);
    this.panels = new Map();
    this.choices = new Map();
    find("tool-list").replaceChildren(...this.folders.map((folder) => this.#group(folder)));
    const asked = new URLSearchParams(location.search).get("tool") ?? "";
    const first = this.choices.has(asked) ? asked : this.choices.keys().next().value;
    if (first) this.choose(first);
    else find("tool").replaceChildren(say(make("p", "muted"), "toolsNone"));
  }

  choose(name) {
    const { tool } = this.choices.get(name);
    const panel = this.panels.get(name) ?? new ToolPanel(tool);
    this.panels.set(name, panel);
    for (const [each, { choice }] of this.choices) choice.ariaCurrent = String(each === name);
    find("tool").replaceChildren(panel.element);
  }

  #group(folder) {
    const title = titled(make("h2", "group-title"), `folder.${folder.name}`, folder.title);
    if (!folder.registered) return make("div", "group", title, reasonElement(folder.reason ?? ""));
    const list = make("ul", "group-tools", ...folder.tools.map((tool) => make("li", "", this.#choice(tool))));
    return make("div", "group", title, list);
  }

  #choice(tool) {
    const choice = namedButton("choice", tool.name, () => {
      this.choose(tool.name);
      history.replaceState(null, "", `?${new URLSearchParams({ view: "tools", tool: tool.name })}`);
    });
    this.choices.set(tool.name, { tool, choice });
    return choice;
  }
}

const VARIABLE = /\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?:=\w+)?/g;

/** Why a folder offers nothing, and the variables that change it. */
function reasonElement(reason) {
  const variables = reason.match(VARIABLE) ?? [];
  if (!variables.length) return make("p", "group-reason", reason);
  const why = reason.startsWith("switched off") ? "switchedOff" : "notConfigured";
  return make("p", "group-reason", say(make("span"), why), ...variables.map((each) => make("code", "", each)));
}
