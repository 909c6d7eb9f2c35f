/** The questions to begin a conversation with, in the language of the page. */

import { isRead } from "./compare.js";
import { find, make, namedButton } from "./elements.js";
import { say } from "./texts.js";

const MOST = 6;

/** The first of them; those in another language only where there are few in the page's. */
function chosen(starters) {
  const read = starters.filter(({ question }) => isRead(question));
  return (read.length < 3 ? [...new Set([...read, ...starters])] : read).slice(0, MOST);
}

export function showStarters(starters, ask) {
  const show = () => find("starters").replaceChildren(...chosen(starters()).map((starter) => choiceOf(starter, ask)));
  document.addEventListener("languagechange", show);
  show();
}

function choiceOf(starter, ask) {
  const choice = namedButton("example", starter.question, () => ask(starter));
  if (starter.plan) choice.prepend(say(make("span", "badge ok"), "todo"), " ");
  return choice;
}
