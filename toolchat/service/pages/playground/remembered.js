/** What this browser remembers for a client of the service: its conversations, and which of them this tab shows.
 *
 * A conversation has the `id` of its session, a `name` (the user's, at first the question that it began with), the time
 * `at` when it was last asked something, `answered` once the service knows the session, and while a question has no
 * answer `pending`: `question`, `plan`, `replaced` (how many turns it replaces), `running` (its address in the
 * background), the `approval` that it waits for, by its `id`, and the `problem` because of which it has none. */

import { newKey } from "./elements.js";

const SESSION = "toolchat.session";
const CONVERSATIONS = "toolchat.conversations";
const MOST = 100;
const LONGEST_NAME = 80;

/** Each client has its own, and sees no other's. */
const of = (name) => (remembered.owner ? `${name}.${remembered.owner}` : name);

function read() {
  try {
    const found = JSON.parse(localStorage.getItem(of(CONVERSATIONS)) ?? "[]");
    return Array.isArray(found) ? found.filter((each) => typeof each?.id === "string") : [];
  } catch {
    return [];
  }
}

function write(conversations) {
  localStorage.setItem(of(CONVERSATIONS), JSON.stringify(conversations.slice(0, MOST)));
  document.dispatchEvent(new Event("conversationschange"));
}

addEventListener("storage", ({ key }) => {
  if (key === of(CONVERSATIONS)) document.dispatchEvent(new Event("conversationschange"));
});

export const remembered = {
  /** The name of the client, as the service tells it: empty without a key, nothing before it is known. */
  owner: undefined,

  /** The session that this tab shows, empty before the first question. */
  get session() {
    return sessionStorage.getItem(of(SESSION)) ?? "";
  },

  set session(id) {
    sessionStorage.setItem(of(SESSION), id);
  },

  get conversations() {
    return read().sort((one, other) => other.at - one.at);
  },

  /** Adds the sessions that the service lists for the key and that this browser does not know. */
  merge(sessions) {
    const known = new Set(read().map(({ id }) => id));
    const found = sessions.filter((each) => !known.has(each.session_id));
    const added = found.map((each) => ({ id: each.session_id, name: each.title, at: each.updated_at * 1000, answered: true }));
    if (added.length) write([...read(), ...added]);
  },

  /** A question is asked in the conversation that is shown, or in a new one, which is given. */
  begin(pending) {
    const id = (remembered.session ||= newKey());
    const name = remembered.find(id)?.name || nameOf(pending.question);
    remembered.update(id, { name, at: Date.now(), pending });
    return remembered.find(id);
  },

  find(id) {
    return read().find((each) => each.id === id);
  },

  update(id, changes) {
    const others = read().filter((each) => each.id !== id);
    const before = remembered.find(id) ?? { id, name: "", at: Date.now() };
    write([{ ...before, ...changes }, ...others]);
  },

  /** A question has its answer, one that waits for an approval, or none; where it is `running`, none yet. */
  record(id, { answer, running, problem }) {
    const pending = remembered.find(id)?.pending;
    if (!pending) return; // it was deleted in another tab
    const { approval } = answer ?? {};
    if (answer && !approval) return remembered.update(id, { pending: undefined, answered: true });
    remembered.update(id, { pending: { ...pending, approval: approval && { id: approval.id }, running, problem } });
  },

  rename(id, name) {
    if (nameOf(name)) remembered.update(id, { name: nameOf(name) });
  },

  clear() {
    if (remembered.owner) localStorage.removeItem(of(CONVERSATIONS));
  },

  forget(id) {
    write(read().filter((each) => each.id !== id));
    if (remembered.session === id) remembered.session = "";
  },
};

function nameOf(text) {
  const line = text.trim().replace(/\s+/g, " ");
  return line.length > LONGEST_NAME ? `${line.slice(0, LONGEST_NAME - 1)}…` : line;
}
