/** Questions in the background: whether they have their answers. */

import { address, make } from "./elements.js";
import { heldKey } from "./key.js";
import { documentOf } from "./problem.js";
import { remembered } from "./remembered.js";
import { readJson } from "./sse.js";
import { say } from "./texts.js";

/** Finds out how the question of a session has ended, if it runs no longer; gives its state. */
export async function settle(session) {
  const { running } = remembered.find(session)?.pending ?? {};
  if (!running) return undefined;
  const { status, answer, error } = await readJson(running).catch((fault) => ({ status: documentOf(fault).code }));
  if (["completed", "failed", "cancelled", "not-found"].includes(status)) remembered.record(session, { answer, problem: error });
  // The record of a question is stored for minutes: the conversation may have its answer.
  if (status === "not-found") remembered.update(session, { answered: true });
  return status;
}

/** Adds what the service lists for the key: sessions of other browsers, and their questions that have no answer yet. */
export async function discover() {
  const sessions = heldKey() ? await readJson(address("/sessions")) : [];
  remembered.merge(sessions);
  const isFree = ({ running, approval, session_id: id }) => (running || approval) && remembered.find(id) && !remembered.find(id).pending;
  for (const session of sessions.filter(isFree)) {
    const pending = await pendingIn(session);
    if (pending && isFree(session)) remembered.update(session.session_id, { at: Date.now(), pending });
  }
}

async function pendingIn({ running, approval }) {
  const { href } = address(running ? `/questions/${running}` : `/approvals/${approval}`);
  const { status, question, id } = await readJson(href).catch(() => ({})); // it has ended meanwhile
  if (["queued", "running"].includes(status)) return { question, plan: false, running: href };
  return status === "waiting" && { question, plan: false, approval: { id } };
}

/** Records a decision of somebody else, once its outcome is there: an answer, none, or the next call that waits. */
export function recordDecided({ id: decided, answer, failure, approval }) {
  const known = remembered.conversations.find(({ pending }) => pending?.approval?.id === decided);
  if (!known || !(answer || failure || approval)) return;
  const next = { ...known.pending, approval: approval && { id: approval }, problem: failure && { code: "internal", detail: failure } };
  remembered.update(known.id, { at: Date.now(), answered: true, pending: answer ? undefined : next });
}

/** Says that the service stores a session no longer. A question without an answer can be asked again, in a new one. */
export function lose(session) {
  const { name = "", pending } = remembered.find(session) ?? {};
  if (pending) remembered.update(session, { answered: false, pending: { question: pending.question, plan: pending.plan } });
  else remembered.forget(session);
  return say(make("p", "muted gone"), "gone", { name });
}

/** Looks after what is not shown, for the list; but asks nobody for a key again and again. */
export function watch() {
  const timer = setInterval(async () => {
    if (!document.hidden) await discover().catch(() => {}); // the next time may succeed
    for (const { id } of remembered.conversations) {
      if (id !== remembered.session && (await settle(id)) === "unauthorized") clearInterval(timer);
    }
  }, 5000);
}
