"""Images of a question on the page: pasted or chosen, shown, sent where the model takes them, and kept by nobody."""

import struct
import zlib
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import FilePayload, Page, expect

from tests.players.openai_player import OpenAIPlayer
from tests.service.pages.page import CONVERSATION, Visit, say, streamed, violations
from tests.serving import service

PASTE = """async ([base64, text]) => {
    const bytes = Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
    const clipboardData = new DataTransfer();
    clipboardData.items.add(new File([bytes], "pasted", { type: "image/png" }));
    if (text) clipboardData.setData("text/plain", text);
    const event = new ClipboardEvent("paste", { clipboardData, cancelable: true, bubbles: true });
    document.activeElement.dispatchEvent(event);
    return event.defaultPrevented;
}"""
ENTER = 'document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));'
SIZE = """(url) => new Promise((resolve) => {
    const image = Object.assign(new Image(), { src: url, onload: () => resolve([image.width, image.height]) });
})"""
NOTED = ["What is it?\n[image left out]", "A house."]


def png(width: int, height: int) -> bytes:
    """A white picture with a comment, as cameras write the place."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\xff" * width) * height)
    chunks = ((b"IHDR", head), (b"tEXt", b"Comment\0at home"), (b"IDAT", rows), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*each) for each in chunks)


def files(count: int, width: int, height: int) -> list[FilePayload]:
    return [FilePayload(name=f"{n}.png", mimeType="image/png", buffer=png(width, height)) for n in range(count)]


@asynccontextmanager
async def seeing(visit: Visit, **options: object) -> AsyncGenerator[tuple[Page, OpenAIPlayer]]:
    """The page of a service whose model takes images."""
    async with (
        OpenAIPlayer(lambda _: streamed("A house.")) as player,
        service(OPENAI_BASE_URL=player.base_url, OPENAI_IMAGES="true") as client,
        visit(client.base_url, place=CONVERSATION, ready="#add-image:not([hidden])", **options) as page,
    ):
        yield page, player


async def paste(page: Page, content: bytes, text: str = "") -> bool:
    await page.get_by_label("Message").focus()
    return bool(await page.evaluate(PASTE, [b64encode(content).decode(), text]))


async def test_a_pasted_image_is_shown_made_smaller_and_sent_with_the_question(visit: Visit) -> None:
    async with seeing(visit) as (page, player):
        assert await paste(page, png(3200, 800))
        await expect(page.locator("#images img")).to_have_count(1)
        await expect(page.get_by_label("Plan first")).to_be_disabled()
        await say(page, "What is it?")
        await expect(page.locator(".turn.assistant .text")).to_have_text("A house.")
        await expect(page.locator(".turn.user img")).to_be_visible()
        await expect(page.locator("#images")).to_be_hidden()
        await expect(page.get_by_label("Plan first")).to_be_enabled()
        text, image = player.requests[-1].body["messages"][-1]["content"]
        url = image["image_url"]["url"]
        assert (text["text"], await page.evaluate(SIZE, url)) == ("What is it?", [1600, 400])
        assert b"at home" not in b64decode(url.partition(",")[2])
        await page.get_by_role("button", name="Another answer").click()
        await expect(page.locator(".turn.user img")).to_be_visible()
        await expect(page.locator("#send")).to_be_visible()
        assert len(player.requests) == 2
        assert player.requests[-1].body["messages"][-1]["content"][1] == image
        await page.get_by_role("button", name="Edit").click()
        await expect(page.locator("#images img")).to_have_count(1)
        await page.reload()
        await expect(page.locator(".turn .text")).to_have_text(NOTED)


async def test_images_are_chosen_and_removed_by_keyboard_at_most_four(visit: Visit) -> None:
    async with seeing(visit) as (page, player):
        async with page.expect_file_chooser() as chosen:
            await page.get_by_role("button", name="Add image").press("Enter")
        await (await chosen.value).set_files(files(5, 9, 9))
        await expect(page.locator("#images img")).to_have_count(4)
        await expect(page.get_by_role("alert")).to_have_text("Only images can be added, at most four.")
        for _ in range(3):
            await page.get_by_role("button", name="Remove").first.press("Enter")
            await expect(page.get_by_label("Message")).to_be_focused()
        assert await paste(page, b"no image")
        await expect(page.get_by_role("alert")).to_be_visible()
        assert not await paste(page, png(9, 9), text="a text, and its picture")
        await say(page, "What is it?")
        await expect(page.get_by_role("alert")).to_be_hidden()
        await expect(page.locator(".turn.assistant .text")).to_have_text("A house.")
        assert len(player.requests[-1].body["messages"][-1]["content"]) == 2


async def test_images_that_are_still_read_count_and_go_with_the_question(visit: Visit) -> None:
    async with seeing(visit) as (page, player):
        await page.get_by_label("Message").fill("What is it?")
        await page.get_by_label("Message").focus()
        pasting = f"(given) => {{ for (let n = 0; n < 5; n++) ({PASTE})(given); {ENTER} }}"
        await page.evaluate(pasting, [b64encode(png(3200, 800)).decode(), ""])
        await expect(page.locator(".turn.assistant .text")).to_have_text("A house.")
        assert len(player.requests[-1].body["messages"][-1]["content"]) == 1 + 4


@pytest.mark.parametrize(
    ("width", "options", "button"),
    [(390, {"locale": "en-US"}, "Add image"), (1280, {"locale": "zh-CN", "color_scheme": "dark"}, "添加图片")],
)
async def test_images_fit_and_violate_no_rule(visit: Visit, width: int, options: dict[str, str], button: str) -> None:
    async with seeing(visit, width=width, **options) as (page, _):
        await expect(page.get_by_role("button", name=button)).to_be_visible()
        await page.locator("#message").focus()
        await page.locator("#image-files").set_input_files(files(5, 1900, 300))
        await expect(page.locator("#images img")).to_have_count(4)
        assert await violations(page) == []
        await page.locator("#message").fill("?")
        await page.locator("#message").press("Enter")
        await expect(page.locator(".turn.user img")).to_have_count(4)
        await expect(page.locator(".turn.assistant .figures")).to_be_attached()
        assert await violations(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_where_the_model_takes_no_images_none_is_offered(visit: Visit) -> None:
    async with visit(place=CONVERSATION) as page:
        await expect(page.locator("#send")).to_be_enabled()
        await expect(page.locator("#add-image")).to_be_hidden()
        assert not await paste(page, png(9, 9))
        await expect(page.locator("#images")).to_be_hidden()
