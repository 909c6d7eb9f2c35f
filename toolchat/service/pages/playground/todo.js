/** The todo list of a conversation: a card beside it, a strip that opens above it on a small screen. */

import { find, make } from "./elements.js";
import { say } from "./texts.js";

export const EMPTY = { items: [], completed: 0, total: 0 };

/** Keeps the list open where there is room for it, and closed where it would stand before the conversation. */
export function foldTodo() {
  const narrow = matchMedia("(max-width: 1100px)");
  const fold = () => { find("todo-details").open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();
}

/** Shows the list where there is one. */
export function showTodo({ items, completed, total }) {
  find("todo").hidden = !items.length;
  find("conversation").classList.toggle("with-todo", items.length > 0);
  Object.assign(find("todo-progress"), { max: total || 1, value: completed });
  say(find("todo-count"), "todoCount", { completed, total });
  find("todo-items").replaceChildren(...items.map(({ text: said, status }) =>
    make("li", status, say(make("span", "hidden"), status), make("span", "", said))));
}
