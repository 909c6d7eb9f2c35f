/** A conversation with the tools of the service, and its todo list beside it. */

import { AnswerView } from "./answer.js";
import { Conversations } from "./conversations.js";
import { PageEnd, address, announce, find, limitLength, make, onEnter, onSubmit, replaceButton, sessionAddress } from "./elements.js";
import { Images, described } from "./images.js";
import { ToolChoice, showStarters } from "./offers.js";
import { Problem, documentOf, problemElement } from "./problem.js";
import { remembered } from "./remembered.js";
import { lose, settle } from "./running.js";
import { posted, readJson } from "./sse.js";
import { say, text } from "./texts.js";
import { EMPTY, showTodo } from "./todo.js";
import { Turn, storedTurns } from "./turn.js";

export class Conversation {
  /** `folders`: the tool modules that are there; the most characters of a question, and whether the model takes images. */
  constructor(folders, { question_max_chars: longest, takes_images: takesImages }) {
    this.plans = folders.some(({ name }) => name === "todo");
    this.message = find("message");
    this.plan = find("plan");
    this.tools = new ToolChoice(folders);
    // A plan is asked for elsewhere, where no image is taken.
    if (takesImages) this.images = new Images((any) => { this.plan.disabled = any; this.plan.checked &&= !any; });
    limitLength(this.message, find("message-limit"), longest);
    this.turns = [];
    this.end = new PageEnd(find("conversation"));
    find("planning").hidden = !this.plans;
    const open = (id) => { this.message.focus(); this.open(id); };
    this.list = new Conversations(open, (id) => this.forget(id), (error) => this.#showProblem(error));
    this.#listen();
    showStarters(folders, ({ question, plan }) => this.#askAtOnce(question, plan || this.plan.checked));
    find("todo-details").open = !matchMedia("(max-width: 1100px)").matches; // there it stands before the conversation
    showTodo(EMPTY);
  }

  /** Shows what is known of the tab's conversation, here and in the service; questions are taken from then on. */
  async restore() {
    const { session } = remembered;
    const opening = (this.opening = {});
    if (session) await this.#restoreTurns(session, opening);
    if (opening !== this.opening) return;
    const hasEnded = ["completed", "not-found"].includes(await settle(session));
    if (opening !== this.opening) return;
    if (hasEnded) return this.open(session);
    const { pending, at } = remembered.find(session) ?? {};
    this.at = at;
    if (pending) this.#restoreQuestion(session, pending);
    this.end.follows = Boolean(session); // also if it was scrolled while the turns were laid out
    this.end.follow();
    find("send").disabled = false;
  }

  async open(id) {
    this.#clear();
    remembered.session = id;
    this.list.show();
    find("send").disabled = true;
    await this.restore();
  }

  async send() {
    await this.images?.added;
    const question = this.message.value.trim();
    if (!question || this.#busy || !this.message.reportValidity()) return;
    const from = this.editing ?? this.turns.length, images = this.images?.urls;
    this.#edit();
    this.#ask(question, from, images);
  }

  async forget(id) {
    this.view?.stop();
    this.#clear();
    try {
      await readJson(sessionAddress(id), { method: "DELETE" });
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

  /** Shows what another tab, browser or person has done in this conversation. */
  #join() {
    const { at, pending } = remembered.find(remembered.session) ?? {};
    const isShown = !pending || pending.running || pending.approval || pending.problem;
    if (at && at !== this.at && isShown && !this.#busy) this.open(remembered.session);
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
    onSubmit(find("talk-form"), () => this.send());
    find("stop").addEventListener("click", () => this.view?.stop());
    document.addEventListener("conversationschange", () => this.#join());
    find("edit-cancel").addEventListener("click", () => this.#edit());
    this.message.addEventListener("keydown", ({ key }) => { if (key === "Escape" && this.editing !== undefined) this.#edit(); });
    onEnter(this.message, () => this.send());
  }

  /** Asks in place of the turns from a place on; the service forgets those of them that it knows. */
  #ask(question, from = this.turns.length, images = []) {
    const plan = this.plans && this.plan.checked;
    const before = remembered.find(remembered.session)?.pending?.replaced ?? 0;
    const replaced = this.turns.slice(from).filter((turn) => turn.answered).length || (from < this.turns.length ? before : 0);
    this.#drop(from);
    this.end.follows = true;
    const { id: sessionId, at } = remembered.begin({ question: described(question, images), plan, replaced });
    this.at = at;
    const view = this.#addQuestion(sessionId, { question, plan, images });
    this.#offer();
    const tools = plan ? undefined : this.tools.chosen;
    const body = { userInput: question, sessionId, replaceTurns: replaced || undefined, tools, images: images.length ? images : undefined };
    view.run(address(plan ? "/todo/chat" : "/chat/stream"), posted(body));
  }

  /** Asks by a button that is gone then. */
  #askAtOnce(question, plan, from, images) {
    if (this.#busy) return;
    if (remembered.find(remembered.session)?.pending?.running) return this.open(remembered.session); // it still runs
    this.plan.checked = plan;
    this.#ask(question, from, images);
    find("stop").focus({ preventScroll: true });
  }

  #addQuestion(session, { question, plan, images }) {
    const view = new AnswerView({
      name: () => text("assistant"),
      place: () => this.message,
      callsFirst: true,
      onEvent: (event, data) => { if (event === "todo" && view === this.view) showTodo(data); },
      onHeaders: () => remembered.record(session, { running: view.question?.href }),
      onRunning: (running) => this.#onRunning(session, view, running),
      onShown: () => this.end.follow(),
    });
    this.#addTurn({ question, plan, images, view, answered: false });
    return view;
  }

  #onRunning(session, view, running) {
    if (view !== this.view) return;
    this.#showRunning(running);
    if (!running) this.#rememberEnd(session, this.turns.at(-1));
    this.#offer();
    this.end.follow();
  }

  #showRunning(running) {
    if (running) replaceButton(find("send"), find("stop"));
    else replaceButton(find("stop"), find("send"), this.message);
  }

  #rememberEnd(session, turn) {
    const { answer } = turn.view;
    if (answer && !answer.approval) Object.assign(turn, { answered: true, answer: answer.answer });
    remembered.record(session, { answer, running: turn.view.question?.href });
  }

  async #restoreTurns(session, opening) {
    try {
      const stored = await storedTurns(session);
      const todo = this.plans ? await readJson(address(`/todo/${encodeURIComponent(session)}`)) : EMPTY;
      if (opening !== this.opening) return;
      for (const turn of stored) this.#addTurn(turn);
      this.#offer();
      showTodo(todo);
    } catch (error) {
      if (opening !== this.opening) return;
      if (error instanceof Problem && error.document.code === "not-found") find("turns").append(lose(session));
      else this.#showProblem(error);
    }
  }

  /** Shows the question that has no answer yet, and goes on with it. */
  #restoreQuestion(session, { question, plan, replaced, running, approval, problem }) {
    const hasAnswer = !running && !approval && !problem && this.turns.at(-1)?.question === question;
    if (hasAnswer) return remembered.update(session, { pending: undefined }); // it came while nobody read it
    this.#drop(this.turns.length - (replaced ?? 0));
    const view = this.#addQuestion(session, { question, plan });
    if (running) view.run(running);
    else if (approval) view.wait(approval);
    else view.after.append(problem ? problemElement(problem) : say(make("p", "muted"), "notAnswered"));
    this.plan.checked = plan;
    this.#offer();
  }

  #addTurn(known) {
    const turn = new Turn(known);
    this.turns.push(turn);
    find("turns").append(...turn.parts);
    find("talk-empty").hidden = true;
    this.end.follow();
  }

  #drop(from) {
    for (const turn of this.turns.splice(from)) turn.remove();
  }

  #offer() {
    const running = Boolean(this.view?.running);
    const waits = remembered.find(remembered.session)?.pending?.approval;
    for (const [at, turn] of this.turns.entries()) {
      const again = at === this.turns.length - 1 && !running && !waits;
      turn.offer(running || waits ? null : () => this.#edit(at), again ? () => this.#askAtOnce(turn.question, turn.plan, at, turn.images) : null);
    }
  }

  /** Lets the question of a turn be edited in the field for messages; without one, ends that. */
  #edit(at) {
    this.editing = at;
    this.message.value = at === undefined ? "" : this.turns[at].question;
    this.message.dispatchEvent(new Event("input"));
    this.images?.show(this.turns[at]?.images ?? []);
    find("editing").hidden = at === undefined;
    for (const [each, { parts }] of this.turns.entries()) {
      for (const part of parts) part.classList.toggle("replaced", at !== undefined && each >= at);
    }
    this.message.focus();
  }

  #showProblem(error) {
    find("turns").append(problemElement(documentOf(error)));
  }
}
