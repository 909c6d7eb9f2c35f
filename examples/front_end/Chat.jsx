import { useState } from "react";
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";

const transport = new DefaultChatTransport({ api: "/ai-sdk/chat" });

export default function Chat() {
  const [text, setText] = useState("");
  const { messages, sendMessage, addToolApprovalResponse, status, error } = useChat({
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const ask = (event) => {
    event.preventDefault();
    sendMessage({ text });
    setText("");
  };
  return (
    <main>
      {messages.flatMap(({ id, role, parts }) =>
        parts.map((part, number) => (
          <Part key={`${id}-${number}`} role={role} part={part} decide={addToolApprovalResponse} />
        )),
      )}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={ask}>
        <input value={text} onChange={(event) => setText(event.target.value)} aria-label="Question" />
        <button disabled={!["ready", "error"].includes(status)}>Ask</button>
      </form>
    </main>
  );
}

function Part({ role, part, decide }) {
  if (part.type === "text") return <p className={role}>{part.text}</p>;
  if (part.type === "reasoning") return <details>{part.text}</details>;
  if (part.type !== "dynamic-tool") return null;
  return (
    <pre>
      {part.toolName} {JSON.stringify(part.input)} {part.state} {part.errorText ?? JSON.stringify(part.output)}
      {part.state === "approval-requested" && [true, false].map((approved) => (
        <button key={approved} onClick={() => decide({ id: part.approval.id, approved })}>
          {approved ? "Approve" : "Reject"}
        </button>
      ))}
    </pre>
  );
}
