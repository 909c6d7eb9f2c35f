/** One run of a tool: sent, followed to its end, and shown. */

import { AnswerView } from "./answer.js";
import { address, announce, find, make } from "./elements.js";
import { heldKey } from "./key.js";
import { say, text, timeIn } from "./texts.js";

/** The request that runs a tool. */
export function requestOf(name, body, session, key) {
  const url = address(`/tools/${encodeURIComponent(name)}`, { sessionId: session });
  const headers = { "Content-Type": "application/json" };
  if (key) headers["Idempotency-Key"] = key;
  const tenant = find("tenant").value.trim();
  if (tenant && !heldKey()) headers["X-Tenant-ID"] = tenant;
  return { url, init: { method: "POST", headers, body } };
}

/** The same request for a shell; where it needs a key, that is taken from the shell, for what is copied is kept elsewhere. */
export function asCurl({ url, init }) {
  const quoted = (each) => `'${each.replaceAll("'", "'\\''")}'`;
  const headers = Object.entries(init.headers).map(([name, value]) => ` -H ${quoted(`${name}: ${value}`)}`);
  if (heldKey()) headers.push(' -H "Authorization: Bearer $TOOLCHAT_KEY"');
  return `curl -X POST ${quoted(url.href)}${headers.join("")} -d ${quoted(init.body)}`;
}

/** Shows a run of a tool in an element of its own; it goes on as an answer does. */
export function runView(name) {
  const view = new AnswerView({
    name: () => name,
    waiting: "running",
    failed: "toolFailed",
    onHeaders: (headers) => { if (headers.has("idempotency-replayed")) view.after.append(say(make("p", "muted"), "answeredOnce")); },
    onDone: (answer) => {
      // An answer that is given again has no events before it.
      if (!view.calls.shown.size) view.calls.show(answer);
      if (answer.sandbox) view.after.append(say(make("p", "badge sandbox"), "sandbox"));
      view.after.append(say(make("p", "muted"), "requestId", { id: answer.request_id }));
      announce("answered", { name, answer: text(`call.${answer.outcome}`) });
    },
  });
  view.element.classList.add("run");
  view.element.prepend(say(make("p", "muted"), "at", { time: timeIn(0) }));
  return view;
}
