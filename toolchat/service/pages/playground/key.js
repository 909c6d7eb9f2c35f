/** The key that the service asks for: asked of the user, kept for this tab alone, sent with every request. */

import { address, find } from "./elements.js";
import { remembered } from "./remembered.js";
import { text } from "./texts.js";

const KEY = "toolchat.key";
const TOKEN_HEADER = "X-Approval-Token";
const HEADER = /^[\x21-\x7e]+$/; // what a header can hold

export const heldKey = () => sessionStorage.getItem(KEY) ?? "";

function hold(key) {
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
  find("forget-key").hidden = !key;
}

/** Takes what a name has in the page's address out of it, where a link carries a secret; empty without one. */
function takeFromAddress(name) {
  if (!location.hash.startsWith(`#${name}=`)) return "";
  const secret = location.hash.slice(name.length + 2);
  history.replaceState(history.state, "", location.pathname + location.search);
  return HEADER.test(secret) ? secret : "";
}

/** Uses the key of the link that the service prints when it starts; whether it is another one. */
function takeKey() {
  const key = takeFromAddress("key");
  if (!key || key === heldKey()) return false;
  // Anybody can make a link: with their key in it, what the user asks from now on would be theirs.
  if ((heldKey() || remembered.conversations.length) && !confirm(text("keyReplace"))) return false;
  hold(key);
  return true;
}

export const approvalToken = () => takeFromAddress("token");

export const bearingToken = (token) => (token ? { [TOKEN_HEADER]: token } : {});

export function beginWithKey() {
  hold(heldKey());
  takeKey();
  addEventListener("hashchange", () => { if (takeKey()) location.reload(); });
  find("forget-key").addEventListener("click", () => { remembered.clear(); hold(""); location.reload(); });
}

/** Asks the service with the key. Where it wants another one the user is asked, and then the service again. */
export async function fetchWithKey(url, init) {
  for (;;) {
    const key = heldKey();
    const response = await send(url, init);
    if (response.status !== 401 || (init.headers && TOKEN_HEADER in init.headers)) return response;
    if (key === heldKey() ? !(await askedForKey()) : !heldKey()) return response; // nobody gives one
    init.signal?.throwIfAborted();
  }
}

function send(url, init = {}) {
  const bearer = heldKey() && { Authorization: `Bearer ${heldKey()}` };
  return fetch(url, { ...init, headers: { ...init.headers, ...bearer }, cache: "no-store" });
}

let asking = null;

/** Whether the user gives a key; whoever wants one meanwhile waits for the same. */
function askedForKey() {
  return (asking ??= ask().then(leave).finally(() => { asking = null; }));
}

/** Shows nothing of a client to the next one, who may have given the key. */
async function leave(isGiven) {
  if (!isGiven || remembered.owner === undefined) return isGiven;
  const response = await send(address("/"));
  if (!response.ok || (await response.json()).client === remembered.owner) return true;
  location.reload();
  return new Promise(() => {});
}

function ask() {
  const dialog = find("key-dialog");
  const field = find("key-field");
  field.value = dialog.returnValue = "";
  find("key-fault").hidden = !heldKey();
  field.ariaInvalid = String(Boolean(heldKey()));
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      const key = dialog.returnValue && field.value.trim();
      hold(key);
      resolve(Boolean(key));
    }, { once: true });
  });
}
