/** A conversation with every tool of the service, and its todo list beside it. */

import { AnswerView, documentOf, problemElement } from "./answer.js";
import { callElement } from "./calls.js";
import { address, announce, button, find, make, questionButton } from "./elements.js";
import { remembered } from "./remembered.js";
import { Problem, readJson } from "./sse.js";
import { say, text } from "./texts.js";
import { EMPTY, foldTodo, showTodo } from "./todo.js";

/** @typedef {{question: string, plan: boolean}} Starter a question to begin with, and whether it wants a todo list */

export class Conversation {
  /** @param {boolean} plans whether the service keeps todo lists @param {() => Starter[]} starters */
  constructor(plans, starters) {
    this.plans = plans;
    this.message = /** @type {HTMLTextAreaElement} */ (find("message"));
    this.plan = /** @type {HTMLInputElement} */ (find("plan"));
    /** @type {AnswerView | null} */
    this.view = null;
    find("planning").hidden = find("todo").hidden = !plans;
    find("conversation").classList.toggle("with-todo", plans);
    this.#listen();
    const showStarters = () => find("starters").replaceChildren(...starters().map((starter) => this.#starter(starter)));
    document.addEventListener("languagechange", showStarters);
    showStarters();
    foldTodo();
    showTodo(EMPTY);
  }

  /** Shows what is known of the conversation, here and in the service; questions are taken from then on. */
  async restore() {
    await this.#restoreTurns();
    const { pending } = remembered;
    if (pending) {
      const view = this.#addQuestion(pending.question);
      if (pending.approval) view.wait(pending.approval);
      else this.#offerAgain(view, "notAnswered");
      this.plan.checked = pending.plan;
    }
    find("send").disabled = false;
  }

  /** Sends what was written. */
  send() {
    const question = this.message.value.trim();
    if (!question || this.#busy) return;
    this.message.value = "";
    this.#ask(question);
  }

  /** Forgets the conversation here and in the service. */
  async forget() {
    this.view?.stop();
    this.view = null;
    this.#showRunning(false);
    const { session } = remembered;
    remembered.forget();
    find("turns").replaceChildren();
    find("talk-empty").hidden = false;
    showTodo(EMPTY);
    this.message.focus();
    try {
      if (session) await readJson(address(`/chat/${encodeURIComponent(session)}`), { method: "DELETE" });
      announce("forgotten");
    } catch (error) {
      this.#showProblem(error);
    }
  }

  get #busy() {
    return this.view?.running || find("send").disabled;
  }

  #listen() {
    find("talk-form").addEventListener("submit", (event) => { event.preventDefault(); this.send(); });
    find("stop").addEventListener("click", () => this.view?.stop());
    find("new-conversation").addEventListener("click", () => this.forget());
    this.message.addEventListener("keydown", (event) => {
      // Enter that ends the writing of Chinese characters is not meant for the form.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.send();
    });
    // Whoever scrolls up to read is left there; else the page follows the answer.
    this.follows = true;
    addEventListener("scroll", () => { this.follows = innerHeight + scrollY > document.documentElement.scrollHeight - 80; });
  }

  /** @param {string} question */
  #ask(question) {
    const plan = this.plans && this.plan.checked;
    const sessionId = remembered.session;
    this.follows = true;
    for (const before of document.querySelectorAll("#turns .again")) before.remove();
    remembered.pending = { question, plan };
    const view = this.#addQuestion(question);
    view.run(plan ? address("/todo/chat", { query: question, sessionId }) : address("/chat/stream", { userInput: question, sessionId }));
  }

  /** Asks by a button that is gone then. @param {string} question @param {boolean} plan */
  #askAtOnce(question, plan) {
    this.plan.checked = plan;
    this.#ask(question);
    find("stop").focus({ preventScroll: true });
  }

  /** @param {string} question */
  #addQuestion(question) {
    this.#addTurn("user", make("div", "text", question));
    const view = (this.view = new AnswerView({
      name: () => text("assistant"),
      place: () => this.message,
      callsFirst: true,
      onHeaders: (headers) => { if (view === this.view) remembered.session = headers.get("x-session-id") ?? remembered.session; },
      onEvent: (event, data) => this.#onEvent(view, event, data),
      onRunning: (running) => this.#onRunning(view, running),
    }));
    this.#addTurn("assistant", view.element);
    return view;
  }

  /** @param {AnswerView} view @param {string} event @param {any} data */
  #onEvent(view, event, data) {
    if (event === "todo" && view === this.view) showTodo(data);
    this.#follow();
  }

  /** @param {AnswerView} view @param {boolean} running */
  #onRunning(view, running) {
    if (view !== this.view) return;
    this.#showRunning(running);
    if (!running) this.#rememberEnd(view);
    this.#follow();
  }

  /** @param {boolean} running */
  #showRunning(running) {
    const focused = [find("stop"), find("send")].includes(document.activeElement);
    find("stop").hidden = !running;
    find("send").hidden = running;
    if (focused) (running ? find("stop") : this.message).focus({ preventScroll: true });
  }

  /** @param {AnswerView} view */
  #rememberEnd(view) {
    const { question, plan } = remembered.pending;
    const approval = view.answer?.approval;
    if (approval) remembered.pending = { question, plan, approval: { ...approval, expires_at: Date.now() + approval.expires_in * 1000 } };
    else if (view.answer) remembered.pending = null;
    else {
      remembered.pending = { question, plan };
      this.#offerAgain(view);
    }
    remembered.answered ||= Boolean(view.answer) && !approval;
  }

  /** @param {AnswerView} view @param {string} [key] why there is no answer, where the view does not say it */
  #offerAgain(view, key) {
    const { question, plan } = remembered.pending;
    const again = button("quiet", "askAgain", () => {
      if (this.#busy) return;
      const turn = view.element.closest(".turn");
      turn.previousElementSibling.remove();
      turn.remove();
      this.#askAtOnce(question, plan);
    });
    const offer = make("p", "again", again);
    if (key) view.after.append(say(make("p", "muted"), key));
    view.after.append(offer);
  }

  async #restoreTurns() {
    const { session, answered } = remembered;
    if (!session) return;
    const path = encodeURIComponent(session);
    try {
      if (answered) this.#showMessages((await readJson(address(`/chat/${path}`))).messages);
      if (this.plans) showTodo(await readJson(address(`/todo/${path}`)));
    } catch (error) {
      if (error instanceof Problem && error.document.code === "not-found") remembered.forgetSession();
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
    find("turns").append(problemElement(documentOf(error)));
  }

  /** @param {Starter} starter */
  #starter({ question, plan }) {
    const choice = questionButton(question, () => { if (!this.#busy) this.#askAtOnce(question, plan || this.plan.checked); });
    if (plan) choice.prepend(say(make("span", "badge ok"), "todo"), " ");
    return choice;
  }
}
