"""Tools that return their caller: a function, and a method that is another tool."""

from threading import Thread

from toolchat import ToolContext, ToolModule, tool


def _described(context: ToolContext) -> str:
    caller = context.caller
    return f"<{caller.name}/{caller.tenant}/{','.join(sorted(caller.roles))}>"


async def callerOfFunction(context: ToolContext) -> str:
    """Return the caller."""
    return _described(context)


@tool(requires_approval=True)
async def callerAfterApproval(context: ToolContext) -> str:
    """Return the caller."""
    return _described(context)


class Desk:
    """A desk."""

    @tool(name="callerOfMethod")
    def caller_of_method(self, context: ToolContext) -> str:
        """Return the caller, from a thread that has no context variables."""
        described: list[str] = []
        thread = Thread(target=lambda: described.append(_described(context)))
        thread.start()
        thread.join()
        return described[0]


module = ToolModule(functions=(callerOfFunction, callerAfterApproval), methods=(Desk,), default_query="Who am I?")
