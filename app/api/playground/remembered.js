/** What this tab remembers of its conversation over a reload. */

/**
 * A question that was asked and has no answer.
 * @typedef {{question: string, plan: boolean, approval?: import("./calls.js").PendingApproval & {expires_at: number}}} Pending
 */

const KEY = "toolchat.session";
const ANSWERED = "toolchat.answered";
const PENDING = "toolchat.pending";

/** @param {string} key @param {string} value an empty one is forgotten */
function keep(key, value) {
  if (value) sessionStorage.setItem(key, value);
  else sessionStorage.removeItem(key);
}

export const remembered = {
  /** The session's id, empty before the first question. */
  get session() {
    return sessionStorage.getItem(KEY) ?? "";
  },

  set session(identifier) {
    keep(KEY, identifier);
  },

  /** Whether a turn was finished, so that the service knows the session. */
  get answered() {
    return Boolean(sessionStorage.getItem(ANSWERED));
  },

  set answered(answered) {
    keep(ANSWERED, answered ? "yes" : "");
  },

  /** @returns {Pending | null} its approval only for as long as the service keeps it */
  get pending() {
    /** @type {Pending | null} */
    const pending = JSON.parse(sessionStorage.getItem(PENDING) ?? "null");
    if (pending?.approval && pending.approval.expires_at < Date.now()) delete pending.approval;
    return pending;
  },

  set pending(pending) {
    keep(PENDING, pending ? JSON.stringify(pending) : "");
  },

  /** Forgets the session, which the service no longer has; an unanswered question can still be asked again. */
  forgetSession() {
    const { pending } = remembered;
    remembered.forget();
    remembered.pending = pending && { question: pending.question, plan: pending.plan };
  },

  forget() {
    for (const key of [KEY, ANSWERED, PENDING]) keep(key, "");
  },
};
