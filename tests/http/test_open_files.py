"""A process that may open no more files: that is its own shortage, and no upstream is blamed for it."""

import errno
import os
import resource
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress

import pytest

from tests.http.upstream import asked, forever, outbound, playing
from tests.models.dashscope.playing import SILENCE, asking, played
from tests.models.responding import response_of
from toolchat.errors import Overloaded, UpstreamUnavailable
from toolchat.http.connections import exhaustion_error


@contextmanager
def no_file_left() -> Generator[None, None, None]:
    """Use up all files that the process may open; there are few more than it has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = os.dup(0)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
    taken = [highest]
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        yield
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("named", [False, True], ids=["address", "name"])
async def test_a_connection_without_a_free_file_is_our_own_overload(named: bool) -> None:
    async with playing(forever) as upstream, outbound() as http:
        url = upstream.url.replace("127.0.0.1", "shop.invalid") if named else upstream.url
        with no_file_left(), pytest.raises(Overloaded) as refused:
            await asked(http, url)
        assert (refused.value.code, refused.value.retry_after) == ("overloaded", 1)
        assert "no open file left" in refused.value.detail
        assert (await asked(http, upstream.url)).status == 200


@pytest.mark.parametrize(
    "error", [OSError(errno.EINVAL, "Invalid argument"), socket.gaierror(socket.EAI_AGAIN, "Try again")], ids=repr
)
def test_a_lookup_without_a_free_file_is_our_own_overload_whatever_its_error(error: OSError) -> None:
    assert exhaustion_error(error) is None
    with no_file_left():
        assert exhaustion_error(error) is not None


@pytest.mark.parametrize("error", [ConnectionRefusedError(), TimeoutError()], ids=repr)
def test_an_upstream_that_refused_a_connection_is_to_blame_even_without_a_free_file(error: OSError) -> None:
    with no_file_left():
        assert exhaustion_error(error) is None


async def test_dashscopes_sdk_hands_on_the_same() -> None:
    async with played(SILENCE) as (model, _):
        with pytest.raises(UpstreamUnavailable):  # all that opens files at its first use has done so
            await response_of(model, asking())
        with no_file_left(), pytest.raises(Overloaded):
            await response_of(model, asking())
