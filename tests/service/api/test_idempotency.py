"""Names of requests with an idempotency key; what a repetition gets is tested with the tools that need a key."""

from toolchat.service.api.idempotency import IdempotentRequest


def test_blanks_behind_a_key_do_not_change_the_name_of_its_request() -> None:
    once, again, twice = (IdempotentRequest("alice", key, "?").name for key in ("once ", "once", "twice"))
    assert once == again != twice
