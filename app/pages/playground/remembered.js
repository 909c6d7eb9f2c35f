/** What this browser remembers: its conversations, and which of them this tab shows. */

/**
 * A question that was asked and has no answer.
 * @typedef {{question: string, plan: boolean, approval?: import("./consent.js").PendingApproval & {expires_at: number}}} Pending
 * @typedef {object} Kept a conversation
 * @property {string} id the session's
 * @property {string} name the user's, at first the question that it began with
 * @property {number} at when it was last asked something, in milliseconds
 * @property {boolean} [answered] a turn was finished, so that the service knows the session
 * @property {Pending} [pending]
 */

import { newKey } from "./elements.js";

const SESSION = "toolchat.session";
const CONVERSATIONS = "toolchat.conversations";
const MOST = 100;
const LONGEST_NAME = 80;

/** @returns {Kept[]} */
function read() {
  try {
    const found = JSON.parse(localStorage.getItem(CONVERSATIONS) ?? "[]");
    return Array.isArray(found) ? found.filter((each) => typeof each?.id === "string") : [];
  } catch {
    return [];
  }
}

/** @param {Kept[]} conversations */
function write(conversations) {
  localStorage.setItem(CONVERSATIONS, JSON.stringify(conversations.slice(0, MOST)));
  document.dispatchEvent(new Event("conversationschange"));
}

addEventListener("storage", ({ key }) => {
  if (key === CONVERSATIONS) document.dispatchEvent(new Event("conversationschange"));
});

export const remembered = {
  /** The session that this tab shows, empty before the first question. */
  get session() {
    return sessionStorage.getItem(SESSION) ?? "";
  },

  /** @param {string} id */
  set session(id) {
    if (id) sessionStorage.setItem(SESSION, id);
    else sessionStorage.removeItem(SESSION);
  },

  /** Every conversation, the one that was asked last first. */
  get conversations() {
    return read().sort((one, other) => other.at - one.at);
  },

  /** The session that the next question belongs to: the one that is shown, or a new one. @param {string} question */
  begin(question) {
    remembered.session ||= newKey();
    const known = remembered.find(remembered.session);
    remembered.update(remembered.session, { name: known?.name || nameOf(question), at: Date.now() });
    return remembered.session;
  },

  /** @param {string} id @returns {Kept | undefined} its approval only for as long as the service keeps it */
  find(id) {
    const found = read().find((each) => each.id === id);
    if (found?.pending?.approval && found.pending.approval.expires_at < Date.now()) delete found.pending.approval;
    return found;
  },

  /** @param {string} id @param {Partial<Kept>} changes */
  update(id, changes) {
    const others = read().filter((each) => each.id !== id);
    const before = remembered.find(id) ?? { id, name: "", at: Date.now() };
    write([{ ...before, ...changes }, ...others]);
  },

  /** @param {string} id @param {string} name */
  rename(id, name) {
    if (nameOf(name)) remembered.update(id, { name: nameOf(name) });
  },

  /** @param {string} id */
  forget(id) {
    write(read().filter((each) => each.id !== id));
    if (remembered.session === id) remembered.session = "";
  },
};

/** @param {string} text */
function nameOf(text) {
  const line = text.trim().replace(/\s+/g, " ");
  return line.length > LONGEST_NAME ? `${line.slice(0, LONGEST_NAME - 1)}…` : line;
}
