/** A conversation with every tool of the service, and its todo list beside it. */

import { AnswerView, address, announce, button, callElement, make, problemElement } from "./answer.js";
import { Problem, readJson } from "./sse.js";
import { say, text } from "./texts.js";

/** @typedef {{items: {id: string | number, text: string, status: string}[], completed: number, total: number}} TodoList */

const KEY = "toolchat.session";
const EMPTY = { items: [], completed: 0, total: 0 };
const find = (/** @type {string} */ id) => document.getElementById(id);

export class Conversation {
  /** @param {boolean} plans whether the service keeps todo lists @param {() => string[]} starters questions to begin with */
  constructor(plans, starters) {
    this.plans = plans;
    this.message = /** @type {HTMLTextAreaElement} */ (find("message"));
    /** @type {AnswerView | null} */
    this.view = null;
    find("planning").hidden = find("todo").hidden = !plans;
    find("conversation").classList.toggle("with-todo", plans);
    find("talk-form").addEventListener("submit", (event) => { event.preventDefault(); this.send(); });
    find("stop").addEventListener("click", () => this.view?.stop());
    find("new-conversation").addEventListener("click", () => this.forget());
    this.message.addEventListener("keydown", (event) => {
      // Enter that ends the writing of Chinese characters is not meant for the form.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.send();
    });
    const showStarters = () => find("starters").replaceChildren(...starters().map((question) => this.#starter(question)));
    document.addEventListener("languagechange", showStarters);
    showStarters();
    // Whoever scrolls up to read is left there; else the page follows the answer.
    this.follows = true;
    addEventListener("scroll", () => { this.follows = innerHeight + scrollY > document.documentElement.scrollHeight - 80; });
    this.#showTodo(EMPTY);
    this.#restore();
  }

  get session() {
    return sessionStorage.getItem(KEY) ?? "";
  }

  /** @param {string} identifier */
  set session(identifier) {
    if (identifier) sessionStorage.setItem(KEY, identifier);
    else sessionStorage.removeItem(KEY);
  }

  send() {
    const question = this.message.value.trim();
    if (!question || this.view?.running) return;
    this.message.value = "";
    this.follows = true;
    this.#addTurn("user", make("div", "text", question));
    const view = (this.view = new AnswerView({
      name: () => text("assistant"),
      callsFirst: true,
      onHeaders: (headers) => { this.session = headers.get("x-session-id") ?? this.session; },
      onEvent: (event, data) => {
        if (event === "todo") this.#showTodo(data);
        this.#follow();
      },
      onRunning: (running) => this.#running(view, running),
    }));
    this.#addTurn("assistant", view.element);
    view.run(this.#address(question));
  }

  /** Forgets the conversation here and in the service. */
  async forget() {
    this.view?.stop();
    const session = this.session;
    this.session = "";
    find("turns").replaceChildren();
    find("talk-empty").hidden = false;
    this.#showTodo(EMPTY);
    this.message.focus();
    try {
      if (session) await readJson(address(`/chat/${encodeURIComponent(session)}`), { method: "DELETE" });
      announce("forgotten");
    } catch (error) {
      this.#showProblem(error);
    }
  }

  /** @param {string} question */
  #address(question) {
    if (this.plans && find("plan").checked) return address("/todo/chat", { query: question, sessionId: this.session });
    return address("/chat/stream", { userInput: question, sessionId: this.session });
  }

  /** @param {AnswerView} view @param {boolean} running */
  #running(view, running) {
    if (view !== this.view) return;
    const focused = [find("stop"), find("send")].includes(document.activeElement);
    find("stop").hidden = !running;
    find("send").hidden = running;
    if (focused) (running ? find("stop") : this.message).focus({ preventScroll: true });
    this.#follow();
  }

  /** Shows what the service still knows of the conversation. */
  async #restore() {
    if (!this.session) return;
    const path = encodeURIComponent(this.session);
    try {
      const { messages } = await readJson(address(`/chat/${path}`));
      this.#showMessages(messages);
      if (this.plans) this.#showTodo(await readJson(address(`/todo/${path}`)));
    } catch (error) {
      if (error instanceof Problem && error.document.code === "not-found") this.session = "";
      else this.#showProblem(error);
    }
  }

  /** @param {any[]} messages */
  #showMessages(messages) {
    const responses = new Map(messages.flatMap((each) => each.responses ?? []).map((each) => [each.id, each.text]));
    for (const { role, text: said, tool_calls: calls = [] } of messages) {
      if (role === "tool") continue;
      const shown = calls.map((call) => callElement({ ...call, result: responses.get(call.id) }, false));
      const answer = make("div", "answer", make("div", "calls", ...shown), make("div", "text", said));
      this.#addTurn(role, role === "user" ? answer.lastElementChild : answer);
    }
  }

  /** @param {"user" | "assistant"} role @param {Element} content */
  #addTurn(role, content) {
    const turn = make("article", `turn ${role}`, say(make("h2", "hidden"), role), content);
    find("turns").append(turn);
    find("talk-empty").hidden = true;
    this.#follow();
  }

  #follow() {
    if (this.follows) scrollTo(0, document.documentElement.scrollHeight);
  }

  /** @param {unknown} error */
  #showProblem(error) {
    find("turns").append(problemElement(error instanceof Problem ? error.document : { code: "internal", detail: String(error) }));
  }

  /** @param {string} question */
  #starter(question) {
    const choice = button("example", "send", () => { this.message.value = question; this.send(); });
    delete choice.dataset.text;
    choice.textContent = question;
    return choice;
  }

  /** @param {TodoList} list */
  #showTodo({ items, completed, total }) {
    const progress = /** @type {HTMLProgressElement} */ (find("todo-progress"));
    progress.max = total || 1;
    progress.value = completed;
    progress.hidden = !total;
    if (total) say(find("todo-count"), "todoCount", { completed, total });
    else say(find("todo-count"), "todoEmpty");
    find("todo-items").replaceChildren(...items.map(({ text: said, status }) =>
      make("li", status, say(make("span", "hidden"), status), make("span", "", said))));
  }
}
