/** The list of conversations, and what can be done with the one that is shown. */

import { announce, find, make, namedButton, sessionAddress } from "./elements.js";
import { remembered } from "./remembered.js";
import { readJson } from "./sse.js";
import { say, text, titled } from "./texts.js";

export class Conversations {
  constructor(onOpen, onDelete, onFault) {
    this.onOpen = onOpen;
    this.onFault = onFault;
    this.name = find("rename-field");
    find("new-conversation").addEventListener("click", () => { this.#fold(); onOpen(""); });
    find("show-conversations").addEventListener("click", () => this.#fold(find("show-conversations").ariaExpanded === "false"));
    find("rename").addEventListener("click", () => this.#rename());
    find("export").addEventListener("click", () => this.#export());
    find("delete").addEventListener("click", () => confirmIn("delete-dialog", () => onDelete(remembered.session)));
    find("search").addEventListener("input", () => this.show());
    for (const event of ["conversationschange", "languagechange"]) document.addEventListener(event, () => this.show());
    this.#fold();
    this.show();
  }

  show() {
    const { conversations, session } = remembered;
    const current = conversations.find(({ id }) => id === session);
    const focused = document.activeElement?.closest("#conversation-list button")?.id;
    const wanted = find("search").value.toLowerCase().split(/\s+/);
    const found = conversations.filter(({ name }) => wanted.every((word) => String(name).toLowerCase().includes(word)));
    find("conversation-list").replaceChildren(...found.map((each) => make("li", "", this.#choice(each))));
    find("nothing-found").hidden = found.length > 0 || !conversations.length;
    find("search").hidden = !find("search").value && conversations.length < 5;
    if (focused) find(focused)?.focus();
    find("conversations-empty").hidden = conversations.length > 0;
    find("conversations-count").textContent = conversations.length ? String(conversations.length) : "";
    titled(find("conversation-title"), current?.name ? "" : "newConversation", current?.name);
    find("talk-actions").hidden = !current;
    find("export").hidden = !current?.answered;
  }

  #choice({ id, name }) {
    const { running, approval } = remembered.find(id)?.pending ?? {};
    const choice = namedButton("choice", name || text("conversation"), () => { this.#fold(); this.onOpen(id); });
    if (running || approval) choice.prepend(say(make("span", "badge"), running ? "call.running" : "consentBadge"), " ");
    choice.id = `kept-${id}`;
    choice.title = name;
    choice.ariaCurrent = String(id === remembered.session);
    return choice;
  }

  /** Folds the list, or opens it, where it has no room beside the conversation. */
  #fold(open = false) {
    find("show-conversations").ariaExpanded = String(open);
  }

  #rename() {
    this.name.value = remembered.find(remembered.session)?.name ?? "";
    confirmIn("rename-dialog", () => remembered.rename(remembered.session, this.name.value));
    this.name.select();
  }

  /** Gives the conversation as a file, as the service tells it. */
  async #export() {
    const { session } = remembered;
    try {
      const document = await readJson(sessionAddress(session));
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

function confirmIn(id, action) {
  const dialog = find(id);
  dialog.returnValue = "";
  dialog.onclose = () => { if (dialog.returnValue) action(); };
  dialog.showModal();
}
