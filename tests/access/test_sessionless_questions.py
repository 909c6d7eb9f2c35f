"""Questions without a session cost money, so that no page of another site, image or prefetch may ask them either."""

import httpx
import pytest

PATHS = ["/time/chat?query=hi", "/weather/chat?query=hi", "/tools/simple/test?query=hi"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Referer": "http://evil.example/page"},
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "image"},
        {"Sec-Purpose": "prefetch;prerender"},
        {"Purpose": "prefetch"},
    ],
)
async def test_what_a_page_of_another_site_asks_is_refused(
    path: str, headers: dict[str, str], offline: httpx.AsyncClient
) -> None:
    answer = await offline.get(path, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "cross-site")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Dest": "document"},
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "empty"},
        {"Sec-Fetch-Site": "cross-site", "X-API-Key": "of a program whose window is a file"},
    ],
)
async def test_what_a_user_or_a_program_asks_is_answered(
    path: str, headers: dict[str, str], offline: httpx.AsyncClient
) -> None:
    assert (await offline.get(path, headers=headers)).status_code == 200
