/** A conversation with every tool of the service, and its todo list beside it. */

import { AnswerView } from "./answer.js";
import { Conversations } from "./conversations.js";
import { address, announce, button, find, make, questionButton } from "./elements.js";
import { shownTurns } from "./history.js";
import { Problem, documentOf, problemElement } from "./problem.js";
import { remembered } from "./remembered.js";
import { readJson } from "./sse.js";
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
    find("planning").hidden = !plans;
    this.list = new Conversations((id) => this.open(id), (id) => this.forget(id), (error) => this.#showProblem(error));
    this.#listen();
    const showStarters = () => find("starters").replaceChildren(...starters().map((starter) => this.#starter(starter)));
    document.addEventListener("languagechange", showStarters);
    showStarters();
    foldTodo();
    showTodo(EMPTY);
  }

  /** Shows what is known of the tab's conversation, here and in the service; questions are taken from then on. */
  async restore() {
    const { session } = remembered;
    const opening = (this.opening = {});
    if (session) await this.#restoreTurns(session, opening);
    if (opening !== this.opening) return;
    const pending = remembered.find(session)?.pending;
    if (pending) {
      const view = this.#addQuestion(session, pending.question);
      if (pending.approval) view.wait(pending.approval);
      else this.#offerAgain(view, pending, "notAnswered");
      this.plan.checked = pending.plan;
    }
    find("send").disabled = false;
  }

  /** Shows another conversation, or with an empty id a new one. @param {string} id */
  async open(id) {
    this.#clear();
    remembered.session = id;
    this.list.show();
    find("send").disabled = true;
    this.message.focus();
    await this.restore();
  }

  /** Sends what was written. */
  send() {
    const question = this.message.value.trim();
    if (!question || this.#busy) return;
    this.message.value = "";
    this.#ask(question);
  }

  /** Forgets a conversation here and in the service. @param {string} id */
  async forget(id) {
    this.#clear();
    try {
      await readJson(address(`/chat/${encodeURIComponent(id)}`), { method: "DELETE" });
      remembered.forget(id);
      this.message.focus();
      announce("forgotten");
    } catch (error) {
      await this.restore();
      this.#showProblem(error);
    }
  }

  get #busy() {
    return this.view?.running || find("send").disabled;
  }

  #clear() {
    this.view?.stop();
    this.view = null;
    this.#showRunning(false);
    find("turns").replaceChildren();
    find("talk-empty").hidden = false;
    showTodo(EMPTY);
  }

  #listen() {
    find("talk-form").addEventListener("submit", (event) => { event.preventDefault(); this.send(); });
    find("stop").addEventListener("click", () => this.view?.stop());
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
    this.follows = true;
    for (const before of document.querySelectorAll("#turns .again")) before.remove();
    const sessionId = remembered.begin(question);
    remembered.update(sessionId, { pending: { question, plan } });
    const view = this.#addQuestion(sessionId, question);
    view.run(plan ? address("/todo/chat", { query: question, sessionId }) : address("/chat/stream", { userInput: question, sessionId }));
  }

  /** Asks by a button that is gone then. @param {string} question @param {boolean} plan */
  #askAtOnce(question, plan) {
    this.plan.checked = plan;
    this.#ask(question);
    find("stop").focus({ preventScroll: true });
  }

  /** @param {string} session @param {string} question */
  #addQuestion(session, question) {
    this.#addTurn("user", make("div", "text", question));
    const view = (this.view = new AnswerView({
      name: () => text("assistant"),
      place: () => this.message,
      callsFirst: true,
      onEvent: (event, data) => this.#onEvent(view, event, data),
      onRunning: (running) => this.#onRunning(session, view, running),
      onShown: () => this.#follow(),
    }));
    this.#addTurn("assistant", view.element);
    return view;
  }

  /** @param {AnswerView} view @param {string} event @param {any} data */
  #onEvent(view, event, data) {
    if (event === "todo" && view === this.view) showTodo(data);
    this.#follow();
  }

  /** @param {string} session @param {AnswerView} view @param {boolean} running */
  #onRunning(session, view, running) {
    if (view !== this.view) return;
    this.#showRunning(running);
    if (!running) this.#rememberEnd(session, view);
    this.#follow();
  }

  /** @param {boolean} running */
  #showRunning(running) {
    const focused = [find("stop"), find("send")].includes(document.activeElement);
    find("stop").hidden = !running;
    find("send").hidden = running;
    if (focused) (running ? find("stop") : this.message).focus({ preventScroll: true });
  }

  /** @param {string} session @param {AnswerView} view */
  #rememberEnd(session, view) {
    const before = remembered.find(session)?.pending;
    if (!before) return; // it was deleted in another tab
    const pending = { question: before.question, plan: before.plan };
    const approval = view.answer?.approval;
    if (approval) {
      const expires_at = Date.now() + approval.expires_in * 1000;
      remembered.update(session, { pending: { ...pending, approval: { ...approval, expires_at } } });
    } else if (view.answer) remembered.update(session, { pending: undefined, answered: true });
    else {
      remembered.update(session, { pending });
      this.#offerAgain(view, pending);
    }
  }

  /** @param {AnswerView} view @param {Starter} pending @param {string} [key] why there is no answer, where the view does not say it */
  #offerAgain(view, { question, plan }, key) {
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

  /** @param {string} session @param {object} opening no longer the latest once another conversation is wanted */
  async #restoreTurns(session, opening) {
    const known = remembered.find(session);
    const path = encodeURIComponent(session);
    try {
      const kept = known?.answered ? (await readJson(address(`/chat/${path}`))).messages : [];
      const todo = this.plans ? await readJson(address(`/todo/${path}`)) : EMPTY;
      if (opening !== this.opening) return;
      for (const [role, content] of shownTurns(kept)) this.#addTurn(role, content);
      showTodo(todo);
    } catch (error) {
      if (opening !== this.opening) return;
      if (error instanceof Problem && error.document.code === "not-found") this.#lost(session, known);
      else this.#showProblem(error);
    }
  }

  /** The service keeps it no longer; a question that has no answer can still be asked again, as a new conversation.
   * @param {string} session @param {import("./remembered.js").Kept | undefined} known */
  #lost(session, known) {
    const { name = "", pending } = known ?? {};
    if (pending) remembered.update(session, { answered: false, pending: { question: pending.question, plan: pending.plan } });
    else remembered.forget(session);
    find("turns").append(say(make("p", "notice gone"), "gone", { name }));
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
