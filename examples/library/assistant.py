"""An assistant for a library: two questions in one conversation, with a tool and a memory."""

import asyncio
import os

from toolchat import (
    CONVERSATION_ID,
    ChatClient,
    ChatMemory,
    ChatModel,
    Locks,
    MemoryAdvisor,
    OpenAICompatibleChatModel,
    SqliteStateStore,
    tool,
)
from toolchat.testing import ScriptedModel, call

LOANS = {"Emma": "2 December", "Dune": "9 December"}
QUESTIONS = ("When is Emma due?", "And Dune?")


@tool(read_only=True, timeout=2)
async def due_date(title: str) -> str:
    """Look up when a borrowed book is due."""
    return LOANS.get(title, "not borrowed")


def choose_model() -> ChatModel:
    """Return the model that the environment names, or one that answers from a script."""
    if "OPENAI_MODEL" in os.environ:
        return OpenAICompatibleChatModel(
            base_url=os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1"),
            api_key=os.environ.get("OPENAI_API_KEY", ""),
            model=os.environ["OPENAI_MODEL"],
        )
    return ScriptedModel(
        [
            call("due_date", title="Emma"),
            "Emma is due on 2 December.",
            call("due_date", title="Dune"),
            "Dune is due on 9 December.",
        ]
    )


async def main() -> None:
    """Ask the questions, and print the calls, the answers, and what the memory has in the end."""
    store = SqliteStateStore()  # in memory; SqliteStateStore("state.db") survives a restart
    memory = ChatMemory(store, Locks(store))
    async with choose_model() as model:
        client = ChatClient.create(
            model, tools=[due_date], advisors=[MemoryAdvisor(memory)], tool_context={CONVERSATION_ID: "c-1"}
        )
        for question in QUESTIONS:
            print("user:", question)
            response = await client.prompt(question).call().response()
            for each in response.executions:
                print("tool:", each.call.name, each.call.arguments, "->", each.result)
            print("assistant:", response.message.text)
    print("turns in memory:", len(await memory.turns("c-1")))


if __name__ == "__main__":
    asyncio.run(main())
