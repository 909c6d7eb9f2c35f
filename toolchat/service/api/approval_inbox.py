"""The list of approvals for those who may decide about them, and for those who have asked."""

from collections.abc import AsyncGenerator

from toolchat.service.access.principals import ASK, OPERATE, Principal, current_request_caller
from toolchat.service.api.approval_records import Asked, read_decided, read_waiting
from toolchat.service.api.dependencies import parts_of
from toolchat.state.base import StateStore

_KINDS = _WAITS, _DECIDED = "waiting", "decided"
CURSOR_PATTERN = rf"^(({'|'.join(_KINDS)}):[0-9]{{1,12}}[.][0-9]{{6}}:[A-Za-z0-9_-]{{1,64}})?$"
"""Where a list of approvals continues: behind one of a kind, with its time and its id."""
_PAGE = 50
_MOMENT = 0.001


class ApprovalInbox:
    """Lists the approvals that are stored."""

    def __init__(self, store: StateStore) -> None:
        self._store = store

    async def listed(self, limit: int, before: str = "") -> tuple[list[Asked], str]:
        """What the current principal may decide or has asked, what waits first, then the newest first.

        Returns:
            The approvals, and where to continue; empty at the end.
        """
        first, at, last = before.split(":") if before else (_WAITS, "", "")
        found: list[tuple[float, str, Asked]] = []
        for kind in _KINDS[_KINDS.index(first) :]:
            since = float(at) if at and kind == first else None
            listed = await self._of_kind(kind, limit, since)
            # The last one of the page before comes again, since the time of the store's clock is not exact.
            places = [place for place, each in enumerate(listed, 1) if since and each[2].identifier == last]
            found += listed[places[0] if places else 0 :]
        shown = found[:limit]
        following = "{1}:{0:.6f}:{2.identifier}".format(*shown[-1]) if len(found) > limit else ""
        return [each for _, _, each in shown], following

    async def _of_kind(self, kind: str, limit: int, since: float | None) -> list[tuple[float, str, Asked]]:
        """The newest approvals of one kind that the current principal may see, from a time on."""
        principal = current_request_caller().principal
        found: dict[str, tuple[float, str, Asked]] = {}
        for name in _lists_for(principal):
            of_list: dict[str, tuple[float, str, Asked]] = {}
            async for at, asked in self._entries(f"approvals-{kind}:{name}", since):
                if asked.may_see(principal):
                    of_list[asked.identifier] = at, kind, asked
                if len(of_list) > limit + 1:
                    break
            found |= of_list
        return sorted(found.values(), key=lambda each: each[0], reverse=True)

    async def _entries(self, name: str, since: float | None) -> AsyncGenerator[tuple[float, Asked], None]:
        before, size = since + _MOMENT if since else None, _PAGE
        while size == _PAGE:
            page = await self._store.listed(name, limit=_PAGE, before=before)
            for key, value, at in page:
                yield at, read_decided(value) if key.startswith("approval-decided:") else read_waiting(value)
            before, size = page[-1][2] if page else None, len(page)


def lists_of(asked: Asked) -> tuple[str, ...]:
    """The lists of an approval: of its conversation, of who asked, unless that is anybody, and of who may decide."""
    names = [f"of:{asked.principal.name}"] if asked.principal.name else []
    names += ["all", f"tenant:{asked.tenant}"] if asked.roles else []
    kind = _DECIDED if asked.decided else _WAITS
    return (*parts_of(asked.conversation), *(f"approvals-{kind}:{each}" for each in names))


def _lists_for(principal: Principal) -> list[str]:
    """The lists in which a principal may find something: an approver has another role than those of every key."""
    is_approver = bool(principal.roles - {ASK, OPERATE})
    decides = [f"tenant:{principal.tenant}" if principal.tenant else "all"] if is_approver else []
    return [f"of:{principal.name}", *decides] if principal.name else []
