/** A conversation with the tools of the service, and its todo list beside it. */

import { AnswerView } from "./answer.js";
import { Conversations } from "./conversations.js";
import { address, announce, find, limitLength, make } from "./elements.js";
import { shownTurns } from "./history.js";
import { Problem, documentOf, problemElement } from "./problem.js";
import { remembered } from "./remembered.js";
import { settle } from "./running.js";
import { posted, readJson } from "./sse.js";
import { showStarters } from "./starters.js";
import { say, text } from "./texts.js";
import { EMPTY, foldTodo, showTodo } from "./todo.js";
import { ToolChoice } from "./toolchoice.js";
import { Turn } from "./turn.js";

export class Conversation {
  /** `plans`: whether the service keeps todo lists; `starters`: gives the questions to begin with. */
  constructor(plans, starters, folders, longest) {
    this.plans = plans;
    this.message = find("message");
    this.plan = find("plan");
    this.tools = new ToolChoice(folders);
    limitLength(this.message, find("message-limit"), longest);
    this.turns = [];
    find("planning").hidden = !plans;
    this.list = new Conversations((id) => this.open(id), (id) => this.forget(id), (error) => this.#showProblem(error));
    this.#listen();
    showStarters(starters, ({ question, plan }) => this.#askAtOnce(question, plan || this.plan.checked));
    foldTodo();
    showTodo(EMPTY);
  }

  /** Shows what is known of the tab's conversation, here and in the service; questions are taken from then on. */
  async restore() {
    const { session } = remembered;
    const opening = (this.opening = {});
    if (session) await this.#restoreTurns(session, opening);
    if (opening !== this.opening) return;
    if ((await settle(session)) === "completed") return opening === this.opening ? this.open(session) : undefined;
    if (opening !== this.opening) return;
    const pending = remembered.find(session)?.pending;
    if (pending) {
      this.#drop(this.turns.length - (pending.replaced ?? 0));
      const view = this.#addQuestion(session, pending);
      if (pending.running) view.run(pending.running);
      else if (pending.approval) view.wait(pending.approval);
      else view.after.append(say(make("p", "muted"), "notAnswered"));
      this.plan.checked = pending.plan;
      this.#offer();
    }
    find("send").disabled = false;
  }

  /** Shows another conversation, or with an empty id a new one. */
  async open(id) {
    this.#clear();
    remembered.session = id;
    this.list.show();
    find("send").disabled = true;
    this.message.focus();
    await this.restore();
  }

  /** Sends what was written, in place of the question that is being edited. */
  send() {
    const question = this.message.value.trim();
    if (!question || this.#busy || !this.message.reportValidity()) return;
    const from = this.editing ?? this.turns.length;
    this.#edit();
    this.#ask(question, from);
  }

  /** Forgets a conversation here and in the service. */
  async forget(id) {
    this.view?.stop();
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

  get view() {
    return this.turns.at(-1)?.view;
  }

  get #busy() {
    return this.view?.running || find("send").disabled;
  }

  #clear() {
    const { view } = this;
    this.turns = [];
    view?.leave();
    if (this.editing !== undefined) this.#edit();
    this.#showRunning(false);
    find("turns").replaceChildren();
    find("talk-empty").hidden = false;
    showTodo(EMPTY);
  }

  #listen() {
    find("talk-form").addEventListener("submit", (event) => { event.preventDefault(); this.send(); });
    find("stop").addEventListener("click", () => this.view?.stop());
    find("edit-cancel").addEventListener("click", () => this.#edit());
    this.message.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.editing !== undefined) this.#edit();
      // Enter that ends the writing of Chinese characters is not meant for the form.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.send();
    });
    // Whoever scrolls up to read is left there; else the page follows the answer.
    this.follows = true;
    addEventListener("scroll", () => { this.follows = innerHeight + scrollY > document.documentElement.scrollHeight - 80; });
  }

  /** Asks in place of the turns from a place on; the service forgets those of them that it knows. */
  #ask(question, from = this.turns.length) {
    const plan = this.plans && this.plan.checked;
    const before = remembered.find(remembered.session)?.pending?.replaced ?? 0;
    const replaced = this.turns.slice(from).filter((turn) => turn.answered).length || (from < this.turns.length ? before : 0);
    this.#drop(from);
    this.follows = true;
    const sessionId = remembered.begin(question);
    remembered.update(sessionId, { pending: { question, plan, replaced } });
    const view = this.#addQuestion(sessionId, { question, plan });
    this.#offer();
    const tools = plan ? undefined : this.tools.chosen;
    const body = { userInput: question, sessionId, replaceTurns: replaced || undefined, tools };
    view.run(address(plan ? "/todo/chat" : "/chat/stream"), posted(body));
  }

  /** Asks by a button that is gone then. */
  #askAtOnce(question, plan, from) {
    if (this.#busy) return;
    if (remembered.find(remembered.session)?.pending?.running) return this.open(remembered.session); // it still runs
    this.plan.checked = plan;
    this.#ask(question, from);
    find("stop").focus({ preventScroll: true });
  }

  #addQuestion(session, { question, plan }) {
    const view = new AnswerView({
      name: () => text("assistant"),
      place: () => this.message,
      callsFirst: true,
      onEvent: (event, data) => { if (event === "todo" && view === this.view) showTodo(data); },
      onHeaders: () => remembered.run(session, view.question?.href),
      onRunning: (running) => this.#onRunning(session, view, running),
      onShown: () => this.#follow(),
    });
    this.#addTurn({ question, plan, view, element: view.element, answered: false });
    return view;
  }

  #onRunning(session, view, running) {
    if (view !== this.view) return;
    this.#showRunning(running);
    if (!running) this.#rememberEnd(session, this.turns.at(-1));
    this.#offer();
    this.#follow();
  }

  #showRunning(running) {
    const focused = [find("stop"), find("send")].includes(document.activeElement);
    find("stop").hidden = !running;
    find("send").hidden = running;
    if (focused) (running ? find("stop") : this.message).focus({ preventScroll: true });
  }

  #rememberEnd(session, turn) {
    const { answer } = turn.view;
    if (answer && !answer.approval) Object.assign(turn, { answered: true, answer: answer.answer });
    remembered.end(session, answer, turn.view.question?.href);
  }

  async #restoreTurns(session, opening) {
    const known = remembered.find(session);
    const path = encodeURIComponent(session);
    try {
      const kept = known?.answered ? (await readJson(address(`/chat/${path}`))).messages : [];
      const todo = this.plans ? await readJson(address(`/todo/${path}`)) : EMPTY;
      if (opening !== this.opening) return;
      for (const turn of shownTurns(kept)) this.#addTurn({ ...turn, plan: false, answered: true });
      this.#offer();
      showTodo(todo);
    } catch (error) {
      if (opening !== this.opening) return;
      if (error instanceof Problem && error.document.code === "not-found") this.#lost(session, known);
      else this.#showProblem(error);
    }
  }

  /** The service keeps it no longer; a question that has no answer can still be asked again, as a new conversation. */
  #lost(session, known) {
    const { name = "", pending } = known ?? {};
    if (pending) remembered.update(session, { answered: false, pending: { question: pending.question, plan: pending.plan } });
    else remembered.forget(session);
    find("turns").append(say(make("p", "notice gone"), "gone", { name }));
  }

  #addTurn(known) {
    const turn = new Turn(known);
    this.turns.push(turn);
    find("turns").append(...turn.parts);
    find("talk-empty").hidden = true;
    this.#follow();
  }

  #drop(from) {
    for (const turn of this.turns.splice(from)) turn.remove();
  }

  /** Shows at each turn what can be done with it now. */
  #offer() {
    const running = Boolean(this.view?.running);
    const waits = remembered.find(remembered.session)?.pending?.approval;
    for (const [at, turn] of this.turns.entries()) {
      const again = at === this.turns.length - 1 && !running && !waits;
      turn.offer(running || waits ? null : () => this.#edit(at), again ? () => this.#askAtOnce(turn.question, turn.plan, at) : null);
    }
  }

  /** Lets the question of a turn be edited in the field for messages; without one, ends that. */
  #edit(at) {
    this.editing = at;
    this.message.value = at === undefined ? "" : this.turns[at].question;
    this.message.dispatchEvent(new Event("input"));
    find("editing").hidden = at === undefined;
    for (const [each, { parts }] of this.turns.entries()) {
      for (const part of parts) part.classList.toggle("replaced", at !== undefined && each >= at);
    }
    this.message.focus();
  }

  #follow() {
    if (this.follows && !find("conversation").hidden) scrollTo(0, document.documentElement.scrollHeight);
  }

  #showProblem(error) {
    find("turns").append(problemElement(documentOf(error)));
  }
}
