/** Every tool of the service, with a form that runs it. */

import { AnswerView } from "./answer.js";
import { address, announce, button, copyButton, find, make, namedButton, newKey, onSubmit, replaceButton } from "./elements.js";
import { ArgumentsForm } from "./form.js";
import { heldKey } from "./key.js";
import { remembered } from "./remembered.js";
import { say, text, timeAt, titled } from "./texts.js";

const MOST_RUNS = 20;

/** A request for a shell; where it needs a key, that is taken from the shell, for what is copied is kept elsewhere. */
function asCurl({ url, init }) {
  const quoted = (each) => `'${each.replaceAll("'", "'\\''")}'`;
  const headers = Object.entries(init.headers).map(([name, value]) => ` -H ${quoted(`${name}: ${value}`)}`);
  if (heldKey()) headers.push(' -H "Authorization: Bearer $TOOLCHAT_KEY"');
  return `curl -X POST ${quoted(url.href)}${headers.join("")} -d ${quoted(init.body)}`;
}

function runView(name) {
  const view = new AnswerView({
    name: () => name,
    waiting: "running",
    failed: "toolFailed",
    place: () => find("tool"),
    onHeaders: (headers) => { if (headers.has("idempotency-replayed")) view.after.append(say(make("p", "muted"), "answeredOnce")); },
    onDone: (answer) => {
      // An answer that is given again has no events before it.
      if (!view.calls.shown.size) view.calls.show(answer);
      if (answer.sandbox) view.after.append(say(make("p", "badge sandbox"), "sandbox"));
      view.after.append(say(make("p", "muted"), "requestId", { id: answer.request_id }));
      announce("answered", { name, answer: text(`call.${answer.outcome}`) });
    },
  });
  view.element.classList.add("run");
  view.element.prepend(say(make("p", "muted"), "at", { time: timeAt(Date.now()) }));
  return view;
}

class ToolPanel {
  constructor(tool, isComparable) {
    this.tool = tool;
    this.isComparable = isComparable;
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
    const { name, kind, description, sandbox, requires_approval: consent, approver } = this.tool;
    const title = make("h2", "", make("code", "", name));
    title.id = "tool-title";
    const badges = make("p", "badges", ...(this.isComparable ? [say(make("span", "badge"), `kind.${kind}`)] : []));
    if (consent) badges.append(say(make("span", "badge sandbox"), "consentBadge"));
    if (sandbox) badges.append(say(make("span", "badge sandbox"), "sandbox"));
    const head = make("header", "tool-head", make("div", "tool-title", title, badges), make("p", "tool-text", description));
    if (consent) head.append(say(make("p", "consent-note"), approver ? "approverNote" : "consentNote", { approver }));
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
    const url = address(`/tools/${encodeURIComponent(this.tool.name)}`, { sessionId: remembered.session });
    const tenant = heldKey() ? "" : find("tenant").value.trim();
    const headers = { "Content-Type": "application/json", ...(this.tool.requires_approval && { "Idempotency-Key": key }), ...(tenant && { "X-Tenant-ID": tenant }) };
    return { url, init: { method: "POST", headers, body: this.form.read() } };
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

export class Tools {
  constructor(folders) {
    find("tenant-row").hidden = Boolean(heldKey()); // a key has a tenant of its own
    this.choices = new Map();
    const usable = folders.filter((folder) => folder.registered && folder.tools.length);
    const missing = folders.filter((folder) => !folder.registered);
    find("tool-list").replaceChildren(...usable.map((folder) => this.#group(folder)));
    if (missing.length) find("tool-list").append(missingElement(missing));
    const asked = new URLSearchParams(location.search).get("tool") ?? "";
    const first = this.choices.has(asked) ? asked : this.choices.keys().next().value;
    if (first) this.choose(first);
    else find("tool").replaceChildren(say(make("p", "muted"), "toolsNone"));
  }

  choose(name) {
    const chosen = this.choices.get(name);
    chosen.panel ??= new ToolPanel(chosen.tool, chosen.isComparable);
    for (const [each, { choice }] of this.choices) choice.ariaCurrent = String(each === name);
    find("tool").replaceChildren(chosen.panel.element);
  }

  #group(folder) {
    const list = make("ul", "group-tools", ...folder.tools.map((tool) => make("li", "", this.#choice(tool, folder))));
    return make("div", "group", titleOf(folder), list);
  }

  #choice(tool, { interchangeable: isComparable }) {
    const choice = namedButton("choice", tool.name, () => {
      this.choose(tool.name);
      history.replaceState(null, "", `?${new URLSearchParams({ view: "tools", tool: tool.name })}`);
    });
    this.choices.set(tool.name, { tool, choice, isComparable });
    return choice;
  }
}

const titleOf = ({ name, title }) => titled(make("h2", "group-title"), `folder.${name}`, title);

function missingElement(folders) {
  const groups = folders.map((folder) => make("div", "group", titleOf(folder), reasonElement(folder.reason ?? "")));
  return make("details", "missing", say(make("summary", "muted"), "toolsMissing", { count: folders.length }), ...groups);
}

const VARIABLE = /\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?:=\w+)?/g;

/** Why a folder offers nothing, and the variables that change it. */
function reasonElement(reason) {
  const variables = reason.match(VARIABLE) ?? [];
  if (!variables.length) return make("p", "group-reason", reason);
  const why = reason.startsWith("switched off") ? "switchedOff" : "notConfigured";
  return make("p", "group-reason", say(make("span"), why), ...variables.map((each) => make("code", "", each)));
}
