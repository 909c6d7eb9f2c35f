"""The page of a service that asks for a key."""

import re
from pathlib import Path

from playwright.async_api import Page, Request, expect

from tests.service.pages.page import CONVERSATION, Visit, say
from tests.serving import service
from tests.waiting import until
from toolchat.service.access.keys import digest_of

KEY = "toolchat_right"
ALICE = f"alice={digest_of(KEY)}"
DIALOG = "#key-dialog[open]"
REFUSED = "401 (Unauthorized)"
KEPT = "[JSON.stringify(localStorage), sessionStorage.getItem('toolchat.key')]"


async def give(page: Page, key: str) -> None:
    """Type a key where the page asks for it."""
    await expect(page.get_by_label("Key", exact=True)).to_be_focused()
    await page.keyboard.type(key)
    await page.keyboard.press("Enter")


async def test_the_page_requests_a_key_until_it_is_valid_and_can_forget_it(visit: Visit) -> None:
    async with (
        service(API_KEYS=ALICE) as client,
        visit(client.base_url, ready=DIALOG, faults=REFUSED) as page,
    ):
        await expect(page.locator("#forget-key")).to_be_hidden()
        await give(page, "toolchat_wrong")
        await expect(page.get_by_role("alert")).to_have_text(re.compile("not valid"))
        await give(page, "密钥")
        assert await page.get_by_label("Key", exact=True).evaluate("(field) => field.validity.patternMismatch")
        await page.keyboard.press("Control+a")
        await give(page, KEY)
        await expect(page.locator("#ask")).to_be_enabled()
        await expect(page.locator(DIALOG)).to_have_count(0)
        local, kept = await page.evaluate(KEPT)
        assert (KEY in local, kept) == (False, KEY)
        await page.reload()
        await expect(page.locator("#ask")).to_be_enabled()
        another = await page.context.new_page()
        await another.goto(page.url)
        await expect(another.locator(DIALOG)).to_be_visible()
        await page.get_by_role("button", name="Settings").click()
        await page.get_by_role("button", name="Forget key").click()
        await expect(page.locator(DIALOG)).to_be_visible()
        assert (await page.evaluate(KEPT))[1] is None


async def test_the_link_that_the_service_prints_brings_the_key_and_every_request_bears_it(visit: Visit) -> None:
    sent: list[Request] = []
    async with service(API_KEYS=ALICE) as client, visit(client.base_url, place=f"?view=tools#key={KEY}") as page:
        page.on("request", lambda request: sent.append(request))
        assert page.url == f"{client.base_url}/playground/?view=tools"
        await page.locator("#argument-timeZoneId").fill("Asia/Tokyo")
        await page.get_by_role("button", name="Run", exact=True).click()
        await expect(page.locator(".run .ms")).to_be_visible()
        await page.locator("#conversation-tab").click()
        await say(page, "What time is it in Tokyo?")
        await expect(page.locator(".turn .figures")).to_be_attached()
        await page.reload()
        await expect(page.locator(".turn .figures")).to_be_attached()
        asked = [each for each in sent if "/playground/" not in each.url]
        assert {(await each.all_headers()).get("authorization") for each in asked} == {f"Bearer {KEY}"}
        assert {each.resource_type for each in asked} == {"fetch"}
        assert {"/tools", "/", "/chat/stream"} <= {re.sub(r"https?://[^/]+|\?.*", "", each.url) for each in asked}
        await page.go_back()
        assert KEY not in page.url


async def test_a_link_with_another_key_takes_effect_only_if_the_user_agrees(visit: Visit) -> None:
    async with (
        service(API_KEYS=f"{ALICE},bob={digest_of('other')}") as client,
        visit(client.base_url, place=f"#key={KEY}", faults="another key") as page,
    ):
        page.once("dialog", lambda dialog: dialog.dismiss())
        async with page.expect_event("dialog") as asked:
            await page.evaluate("location.hash = 'key=other'")
        assert "another key" in (await asked.value).message
        await page.wait_for_function(f"sessionStorage.getItem('toolchat.key') === '{KEY}' && !location.hash")
        page.once("dialog", lambda dialog: dialog.accept())
        await page.evaluate("location.hash = 'key=other'")
        await page.wait_for_function("sessionStorage.getItem('toolchat.key') === 'other' && !location.hash")
        await expect(page.locator("#ask")).to_be_enabled()


async def test_a_question_waits_for_another_key_when_the_first_is_valid_no_longer(visit: Visit, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    entry = '[[keys]]\nname = "alice"\nsha256 = "{}"\n'
    file.write_text(entry.format(digest_of(KEY)))
    async with (
        service(API_KEYS_FILE=str(file)) as client,
        visit(client.base_url, place=f"{CONVERSATION}#key={KEY}", faults=REFUSED) as page,
    ):
        file.write_text(entry.format(digest_of("new")))

        async def is_read() -> bool:
            return (await client.get("/", headers={"X-API-Key": KEY})).status_code == 401

        await until(is_read)
        await say(page, "What time is it in Tokyo?")
        await expect(page.get_by_role("alert")).to_have_text(re.compile("not valid"))
        await give(page, "new")
        await expect(page.locator(".turn .figures")).to_be_attached()


async def test_a_question_beyond_a_limit_is_explained(visit: Visit, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(f'[[keys]]\nname = "alice"\nsha256 = "{digest_of(KEY)}"\nrequests_per_minute = 1\n')
    place, faults = f"?view=compare#key={KEY}", "Failed to load resource"
    async with (
        service(API_KEYS_FILE=str(file)) as client,
        visit(client.base_url, place=place, faults=faults, locale="zh-CN") as page,
    ):
        await page.locator("#question").press("Control+Enter")
        await expect(page.locator("#panes :is(.figures, .problem)")).to_have_count(3)
        told = re.compile(r"每分钟允许 1 个问题.*请在 \d+ 秒后重试", re.DOTALL)
        await expect(page.locator("#panes .problem").first).to_have_text(told)


async def test_a_command_that_is_copied_names_the_key_and_does_not_hold_it(visit: Visit) -> None:
    place, permissions = f"?view=tools#key={KEY}", ["clipboard-read", "clipboard-write"]
    async with (
        service(API_KEYS=ALICE) as client,
        visit(client.base_url, place=place, permissions=permissions) as page,
    ):
        await page.get_by_role("button", name="Copy as curl").click()
        await expect(page.get_by_role("button", name="Copied")).to_be_visible()
        copied = await page.evaluate("navigator.clipboard.readText()")
    assert ('-H "Authorization: Bearer $TOOLCHAT_KEY"' in copied, KEY in copied) == (True, False)


async def test_the_conversations_of_a_client_are_not_shown_to_the_next_one(visit: Visit) -> None:
    keys = f"{ALICE},bob={digest_of('other')}"
    async with (
        service(API_KEYS=keys) as client,
        visit(client.base_url, place=f"{CONVERSATION}#key={KEY}", faults=REFUSED) as page,
    ):
        await say(page, "What time is it in Tokyo?")
        await expect(page.locator(".turn .figures")).to_be_attached()
        await page.evaluate("sessionStorage.setItem('toolchat.key', 'other')")
        await page.reload()
        await expect(page.locator("#send")).to_be_enabled()
        await expect(page.locator("#conversation-list button, .turn")).to_have_count(0)
        await page.evaluate(f"sessionStorage.setItem('toolchat.key', '{KEY}')")
        await page.reload()
        await expect(page.locator("#conversation-list button")).to_have_count(1)
        await page.get_by_role("button", name="Settings").click()
        await page.get_by_role("button", name="Forget key").click()
        await expect(page.locator(DIALOG)).to_be_visible()
        assert "Tokyo" not in (await page.evaluate(KEPT))[0]


async def test_who_gives_no_key_is_not_asked_again_and_again(visit: Visit, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    entry = '[[keys]]\nname = "{}"\nsha256 = "{}"\n'
    file.write_text(entry.format("alice", digest_of(KEY)))
    async with (
        service(API_KEYS_FILE=str(file)) as client,
        visit(client.base_url, place=f"{CONVERSATION}#key={KEY}", faults=REFUSED) as page,
    ):
        await expect(page.locator("#send")).to_be_enabled()
        await page.clock.install()
        await page.reload()
        await expect(page.locator("#send")).to_be_enabled()
        file.write_text(entry.format("bob", digest_of("other")))

        async def is_asked() -> bool:
            await page.clock.run_for(5000)
            return await page.locator(DIALOG).count() == 1

        await until(is_asked)
        await page.keyboard.press("Escape")
        sent: list[str] = []
        page.on("request", lambda request: sent.append(request.url))
        await page.clock.run_for(30_000)
        assert sent == []
