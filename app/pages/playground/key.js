/** The key that the service asks for: asked of the user, kept for this tab alone, sent with every request. */

import { address, find } from "./elements.js";
import { problemOf } from "./problem.js";
import { remembered } from "./remembered.js";
import { say, text } from "./texts.js";

const KEY = "toolchat.key";
const FRAGMENT = "#key=", TOKEN_FRAGMENT = "#token=";
const TOKEN_HEADER = "X-Approval-Token";
const HEADER = /^[\x21-\x7e]+$/; // what a header can hold

/** The key in use, empty without one. */
export const heldKey = () => sessionStorage.getItem(KEY) ?? "";

/** Takes the key out of the page's address, where the link has it that the service prints when it starts. */
function takeFromAddress() {
  if (!location.hash.startsWith(FRAGMENT)) return false;
  const key = location.hash.slice(FRAGMENT.length);
  history.replaceState(history.state, "", location.pathname + location.search);
  if (!HEADER.test(key) || key === heldKey()) return false;
  // Anybody can make a link: with their key in it, what the user asks from now on would be theirs.
  if ((heldKey() || remembered.conversations.length) && !confirm(text("keyReplace"))) return false;
  sessionStorage.setItem(KEY, key);
  return true;
}

/** Takes the token of an approval link out of the page's address; empty without one. */
export function approvalToken() {
  if (!location.hash.startsWith(TOKEN_FRAGMENT)) return "";
  const token = location.hash.slice(TOKEN_FRAGMENT.length);
  history.replaceState(history.state, "", location.pathname + location.search);
  return HEADER.test(token) ? token : "";
}

/** The header with the token of an approval, where it has one. @param {string | undefined} token @returns {Record<string, string>} */
export const bearingToken = (token) => (token ? { [TOKEN_HEADER]: token } : {});

/** Uses the key, and shows what makes the page forget it. */
export function beginWithKey() {
  takeFromAddress();
  addEventListener("hashchange", () => { if (takeFromAddress()) location.reload(); });
  find("forget-key").addEventListener("click", () => { sessionStorage.removeItem(KEY); location.reload(); });
  showControl();
}

function showControl() {
  find("forget-key").hidden = !heldKey();
}

/**
 * Asks the service with the key. Where it wants another one the user is asked, and then the service again.
 * @param {string | URL} url @param {RequestInit} init
 * @returns {Promise<Response>} a 401 only where the user gave no key
 */
export async function fetchWithKey(url, init) {
  for (;;) {
    const key = heldKey();
    const response = await fetch(url, { ...init, headers: { ...init.headers, ...bearing(key) }, cache: "no-store" });
    if (response.status !== 401 || (init.headers && TOKEN_HEADER in init.headers)) return response;
    if (key === heldKey() && !(await askedForKey())) return response;
    init.signal?.throwIfAborted();
  }
}

/** @param {string} key @returns {Record<string, string>} */
const bearing = (key) => (key ? { Authorization: `Bearer ${key}` } : {});

/** @type {Promise<boolean> | null} */
let asking = null;

/** Whether the user gives a key; whoever wants one meanwhile waits for the same. */
function askedForKey() {
  return (asking ??= ask().finally(() => { asking = null; }));
}

/** @returns {Promise<boolean>} */
function ask() {
  const dialog = /** @type {HTMLDialogElement} */ (find("key-dialog"));
  const field = /** @type {HTMLInputElement} */ (find("key-field"));
  field.value = "";
  showFault(heldKey() && text("keyWrong"));
  const closed = new AbortController();
  const { signal } = closed;
  find("key-form").addEventListener("submit", (event) => { event.preventDefault(); tryKey(dialog, field.value.trim()); }, { signal });
  find("key-cancel").addEventListener("click", () => dialog.close(), { signal });
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => { closed.abort(); resolve(dialog.returnValue === "given"); }, { once: true });
  });
}

/** Keeps a key that the service takes, and says why where it does not. @param {HTMLDialogElement} dialog @param {string} key */
async function tryKey(dialog, key) {
  const button = /** @type {HTMLButtonElement} */ (find("key-use"));
  button.disabled = true;
  const fault = await faultOf(key);
  button.disabled = false;
  if (!dialog.open) return;
  showFault(fault);
  if (fault) return /** @type {HTMLInputElement} */ (find("key-field")).select();
  sessionStorage.setItem(KEY, key);
  showControl();
  dialog.close("given");
}

/** What the service has against a key; nothing where it takes it. @param {string} key */
async function faultOf(key) {
  if (!HEADER.test(key)) return text("keyWrong");
  try {
    const response = await fetch(address("/"), { headers: bearing(key), cache: "no-store" });
    if (response.ok) return "";
    if (response.status === 401) return text("keyWrong");
    const { code, detail } = await problemOf(response);
    return text(`instead.${code}`, detail ?? code);
  } catch {
    return text("advice.connection-lost");
  }
}

/** @param {string} fault */
function showFault(fault) {
  find("key-fault").textContent = fault;
  find("key-fault").hidden = !fault;
  find("key-field").ariaInvalid = String(Boolean(fault));
}
