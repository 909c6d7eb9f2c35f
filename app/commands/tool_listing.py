"""``toolchat tools``: what there is."""

from app.commands.dialogue import ANSWERED
from app.commands.service import opened_service
from app.commands.terminal import say

__all__ = ["list_tools"]


def list_tools(*, demo: bool) -> int:
    """Print every tool that is registered, and why others are not."""
    with opened_service(demo=demo) as service:
        for module in service.registry.describe():
            state = "registered" if module["registered"] else module["reason"]
            say(f"{module['title']} ({module['path']}): {state}")
            for tool in module["tools"]:
                say(f"  {tool['name']} ({tool['kind']}): {tool['description']}")
    return ANSWERED
