/** The todo list of a conversation: a card beside it, a strip that opens above it on a small screen. */

import { find, make } from "./elements.js";
import { say } from "./texts.js";

export const EMPTY = { items: [], completed: 0, total: 0 };

export function showTodo({ items, completed, total }) {
  find("todo").hidden = !items.length;
  find("conversation").classList.toggle("with-todo", items.length > 0);
  Object.assign(find("todo-progress"), { max: total || 1, value: completed });
  say(find("todo-count"), "todoCount", { completed, total });
  find("todo-items").replaceChildren(...items.map(({ text: said, status }) =>
    make("li", status, say(make("span", "hidden"), status), make("span", "", said))));
}
