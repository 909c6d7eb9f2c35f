/** The questions to begin a conversation with, in the language of the page. */

import { find, make, namedButton } from "./elements.js";
import { say } from "./texts.js";

export function showStarters(starters, ask) {
  const show = () => find("starters").replaceChildren(...starters().map((starter) => choiceOf(starter, ask)));
  document.addEventListener("languagechange", show);
  show();
}

function choiceOf(starter, ask) {
  const choice = namedButton("example", starter.question, () => ask(starter));
  if (starter.plan) choice.prepend(say(make("span", "badge ok"), "todo"), " ");
  return choice;
}
