"""A todo list for each conversation: the model plans with it, and the client sees how far it is."""

from dishka import Provider, Scope, provide

from app.tools.module import ToolModule
from app.tools.todo.advisors import TodoEvents, TodoPlanning, TodoReminder, TodoRepairs
from app.tools.todo.lists import TodoLists
from app.tools.todo.routes import router
from app.tools.todo.tools import TodoRead, TodoUpdate

__all__ = ["module"]


class TodoProvider(Provider):
    """What tools, advisors and routes share."""

    scope = Scope.APP
    lists = provide(TodoLists)


module = ToolModule(
    title="Todo",
    functions=(TodoUpdate, TodoRead),
    advisors=(TodoPlanning, TodoEvents, TodoReminder, TodoRepairs),
    kept=("todo", "todo-rounds"),
    provider=TodoProvider,
    router=router,
)
