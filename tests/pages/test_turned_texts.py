"""A text that turns its direction cannot show somebody who consents another one than it is."""

from tests.browser import OpenPage
from tests.serving import service
from toolchat.service.api.idempotency import IdempotentRequest
from toolchat.service.cli.terminal import escape_controls

TURNED = "Bob\u202etxt.exe"
UNSEEN = "pay\u200b \U000e0041\ufeff\x07"


def test_the_terminal_escapes_bidirectional_characters() -> None:
    assert escape_controls(f'sendParcel({{"to": "{TURNED}"}})') == 'sendParcel({"to": "Bob\\u202etxt.exe"})'


async def test_the_page_escapes_bidirectional_characters(open_page: OpenPage) -> None:
    async with service() as client, open_page() as page:
        await page.goto(f"{client.base_url}/playground/")
        script = "async (text) => (await import('./calls.js')).block('result', text).querySelector('pre').textContent"
        shown = [await page.evaluate(script, text) for text in (TURNED, UNSEEN, f'{{"to": "{TURNED}"}}', "北京 👩‍💻\n")]
        pretty = "async (text) => (await import('./json.js')).pretty(JSON.stringify({ to: text }))"
        edited = await page.evaluate(pretty, TURNED)
    assert shown[:3] == ["Bob\\u202etxt.exe", "pay\\u200b \\udb40\\udc41\\ufeff\\u0007", '{"to": "Bob\\u202etxt.exe"}']
    assert shown[3].startswith("北京 👩")
    assert edited == '{\n  "to": "Bob\\u202etxt.exe"\n}'


def test_blanks_behind_an_idempotency_key_do_not_change_the_request_name() -> None:
    assert (
        IdempotentRequest("alice", "once ", "?").name
        == IdempotentRequest("alice", "once", "?").name
        != IdempotentRequest("alice", "twice", "?").name
    )
