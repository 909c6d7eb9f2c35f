/** The list of conversations, and what can be done with the one that is shown. */

import { address, announce, button, find, make } from "./elements.js";
import { remembered } from "./remembered.js";
import { readJson } from "./sse.js";
import { say, text } from "./texts.js";

/** Shows the list, and tells which conversation is wanted, or that one is to be deleted. */
export class Conversations {
  /** @param {(id: string) => void} onOpen an empty id for a new one @param {(id: string) => void} onDelete
   * @param {(error: unknown) => void} onFault */
  constructor(onOpen, onDelete, onFault) {
    this.onOpen = onOpen;
    this.onFault = onFault;
    this.name = /** @type {HTMLInputElement} */ (find("rename-field"));
    this.dialog = /** @type {HTMLDialogElement} */ (find("delete-dialog"));
    find("new-conversation").addEventListener("click", () => { this.#fold(); onOpen(""); });
    find("show-conversations").addEventListener("click", () => this.#fold(find("conversation-list").classList.contains("folded")));
    find("rename").addEventListener("click", () => this.#beginRename());
    find("rename-form").addEventListener("submit", (event) => { event.preventDefault(); this.#endRename(true); });
    this.name.addEventListener("keydown", ({ key }) => { if (key === "Escape") this.#endRename(false); });
    find("export").addEventListener("click", () => this.#export());
    find("delete").addEventListener("click", () => this.dialog.showModal());
    find("delete-cancel").addEventListener("click", () => this.dialog.close());
    find("delete-confirm").addEventListener("click", () => { this.dialog.close(); onDelete(remembered.session); });
    for (const event of ["conversationschange", "languagechange"]) document.addEventListener(event, () => this.show());
    this.#fold();
    this.show();
  }

  /** Shows what is remembered. */
  show() {
    const { conversations, session } = remembered;
    const current = conversations.find(({ id }) => id === session);
    const focused = document.activeElement?.closest(".kept")?.id;
    find("conversation-list").replaceChildren(...conversations.map((each) => make("li", "", this.#choice(each))));
    if (focused) find(focused)?.focus();
    find("conversations-empty").hidden = conversations.length > 0;
    find("conversations-count").textContent = conversations.length ? String(conversations.length) : "";
    if (current?.name) showName(current.name);
    else say(find("conversation-title"), "newConversation");
    find("talk-actions").hidden = !current;
    find("export").hidden = !current?.answered;
  }

  /** @param {import("./remembered.js").Kept} conversation */
  #choice({ id, name }) {
    const choice = button("kept", "conversation", () => { this.#fold(); this.onOpen(id); });
    delete choice.dataset.text;
    choice.textContent = name || text("conversation");
    choice.id = `kept-${id}`;
    choice.title = name;
    choice.ariaCurrent = String(id === remembered.session);
    return choice;
  }

  /** Folds the list, or opens it, where it has no room beside the conversation. */
  #fold(open = false) {
    find("conversation-list").classList.toggle("folded", !open);
    find("show-conversations").ariaExpanded = String(open);
  }

  #beginRename() {
    this.name.value = remembered.find(remembered.session)?.name ?? "";
    this.#showRename(true);
    this.name.select();
  }

  /** @param {boolean} kept whether the new name is wanted */
  #endRename(kept) {
    if (kept) remembered.rename(remembered.session, this.name.value);
    this.#showRename(false);
    find("rename").focus();
  }

  /** @param {boolean} renaming */
  #showRename(renaming) {
    find("rename-form").hidden = !renaming;
    find("talk-actions").hidden = renaming;
    find("conversation-title").classList.toggle("hidden", renaming);
  }

  /** Gives the conversation as a file, as the service tells it. */
  async #export() {
    const { session } = remembered;
    try {
      const document = await readJson(address(`/chat/${encodeURIComponent(session)}`));
      const link = make("a");
      link.href = URL.createObjectURL(new Blob([JSON.stringify(document, null, 2)], { type: "application/json" }));
      link.download = `conversation-${session}.json`;
      link.click();
      URL.revokeObjectURL(link.href);
      announce("exported");
    } catch (error) {
      this.onFault(error);
    }
  }
}

/** @param {string} name */
function showName(name) {
  const title = find("conversation-title");
  delete title.dataset.text;
  title.textContent = name;
}
