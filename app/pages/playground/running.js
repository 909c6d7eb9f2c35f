/** Questions in the background: whether they have their answers. */

import { documentOf } from "./problem.js";
import { remembered } from "./remembered.js";
import { readJson } from "./sse.js";

/** Finds out how the question of a session has ended, if it runs no longer; gives its state. */
export async function settle(session) {
  const { running } = remembered.find(session)?.pending ?? {};
  if (!running) return undefined;
  const { status, answer } = await readJson(running).catch((error) => ({ status: documentOf(error).code }));
  if (["completed", "failed", "cancelled", "not-found"].includes(status)) remembered.end(session, answer);
  return status;
}

// Those of other conversations than the shown one, for the list.
setInterval(() => {
  for (const { id } of remembered.conversations) if (id !== remembered.session) settle(id);
}, 3000);
