"""A todo list for each conversation: the model plans with it, and the client sees how far it is."""

from app.tools.todo.advisors import TodoEvents, TodoPlanning, TodoReminder, TodoRepairs
from app.tools.todo.lists import TodoLists
from app.tools.todo.tools import TodoRead, TodoUpdate
from toolchat import ToolModule

module = ToolModule(
    title="Todo",
    examples={
        "默认 / default": "帮我计划：查北京时间，再查东京时间",
        "English": "Plan: check the time in Paris; check the time in Tokyo",
    },
    functions=(TodoUpdate, TodoRead),
    in_conversations=False,  # they would cost every question of /chat some 270 tokens
    advisors=(TodoPlanning, TodoEvents, TodoReminder, TodoRepairs),
    provides=(TodoLists,),
)
