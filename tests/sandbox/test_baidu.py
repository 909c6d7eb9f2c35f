"""The sandbox in Baidu's place, over real HTTP."""

import hashlib
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from app.sandbox import create_sandbox, running_sandbox
from tests.serving import client_of, serving
from tests.waiting import PATIENCE

PATH = "/baidu/api/trans/vip/translate"


@pytest.fixture(scope="module")
async def client() -> AsyncGenerator[httpx.AsyncClient, None]:
    """A client of one sandbox for all tests here; each test uses texts and app ids of its own."""
    async with serving(create_sandbox()) as url, client_of(url) as client:
        yield client


def signed(text: str, source: str = "auto", target: str = "en", app_id: str = "sandbox") -> dict[str, str]:
    digest = hashlib.md5(f"{app_id}{text}2026sandbox".encode()).hexdigest()
    return {"q": text, "from": source, "to": target, "appid": app_id, "salt": "2026", "sign": digest}


async def asked(client: httpx.AsyncClient, form: dict[str, str]) -> Any:
    response = await client.post(PATH, data=form)
    assert response.status_code == 200
    assert response.headers["X-Sandbox"] == "toolchat"
    return response.json()


def translations(answer: Any) -> list[str]:
    return [each["dst"] for each in answer["trans_result"]]


async def test_an_answer_has_baidus_shape_in_ascii(client: httpx.AsyncClient) -> None:
    response = await client.post(PATH, data=signed("Good morning!", target="zh"))
    assert response.content.isascii()
    assert b"\\u65e9" in response.content
    assert response.json() == {
        "from": "en",
        "to": "zh",
        "trans_result": [{"src": "Good morning!", "dst": "早上好！"}],
    }


@pytest.mark.parametrize(
    ("text", "source", "target", "expected"),
    [
        ("你好，世界。", "auto", "en", "Hello, world."),
        ("hello, world", "en", "zh", "你好，世界"),
        ("谢谢", "zh", "jp", "ありがとうございます"),
        ("ありがとうございます。", "auto", "kor", "감사합니다."),
        ("감사합니다", "auto", "fra", "Merci"),
        ("Merci !", "fra", "de", "Danke!"),
        ("Où est la gare?", "auto", "spa", "¿Dónde está la estación?"),
        ("¿Dónde está la estación?", "auto", "en", "Where is the station?"),
        ("Entropy", "auto", "zh", "[zh] Entropy"),
        ("你好", "zh", "th", "[th] 你好"),
        ("你好", "en", "fra", "[fra] 你好"),
        ("hello", "en", "en", "hello"),
        ("Guten Tag, Freunde", "auto", "en", "[en] Guten Tag, Freunde"),
    ],
)
async def test_phrases_are_translated_and_all_else_is_marked(
    client: httpx.AsyncClient, text: str, source: str, target: str, expected: str
) -> None:
    answers = [await asked(client, signed(text, source, target)) for _ in range(2)]
    assert translations(answers[0]) == [expected]
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("text", "language"), [("привет", "ru"), ("สวัสดี", "th"), ("مرحبا", "ara"), ("γεια", "el"), ("???", "en")]
)
async def test_a_language_is_detected_by_its_script(client: httpx.AsyncClient, text: str, language: str) -> None:
    assert (await asked(client, signed(text)))["from"] == language


async def test_each_line_is_an_item_and_a_blank_line_is_none(client: httpx.AsyncClient) -> None:
    assert translations(await asked(client, signed("谢谢\n\n再见\nabc"))) == ["Thank you", "Goodbye", "[en] abc"]


FORM = signed("谢谢")


@pytest.mark.parametrize(
    ("form", "code"),
    [
        *(({name: value for name, value in FORM.items() if name != missing}, "54000") for missing in FORM),
        ({}, "54000"),
        (signed("\n"), "54000"),
        (FORM | {"sign": "0" * 32}, "54001"),
        (FORM | {"q": "谢谢 "}, "54001"),
        (FORM | {"sign": FORM["sign"].upper()}, "54001"),
        (signed("谢谢", app_id="somebody"), "52003"),
        (signed("谢谢", app_id="sandbox-qps-0"), "52003"),
        (signed("谢谢", target="auto"), "58001"),
        (signed("谢谢", target="ja"), "58001"),
        (signed("谢谢", source="ja"), "58001"),
        (signed("字" * 2001), "52001"),
        ({f"field{n}": "x" for n in range(30)}, "54000"),
    ],
)
async def test_a_faulty_request_is_answered_with_its_code_as_text(
    client: httpx.AsyncClient, form: dict[str, str], code: str
) -> None:
    answer = await asked(client, form)
    assert answer["error_code"] == code
    assert set(answer) == {"error_code", "error_msg"}


@pytest.mark.parametrize("code", ["52001", "52002", "52003", "54000", "54001", "54003", "54004", "54005", "58000",
                                  "58001", "58002", "58003", "90107", "20003"])  # fmt: skip
async def test_every_error_comes_on_demand_as_text_as_a_number_or_once(client: httpx.AsyncClient, code: str) -> None:
    for _ in range(2):
        assert (await asked(client, signed(f"error:{code}")))["error_code"] == code
    assert (await asked(client, signed(f"error-int:{code}")))["error_code"] == int(code)
    once = [await asked(client, signed(f"error-once:{code}")) for _ in range(3)]
    assert [answer.get("error_code") for answer in once] == [code, None, code]


async def test_an_unknown_error_on_demand_is_only_a_text(client: httpx.AsyncClient) -> None:
    assert translations(await asked(client, signed("error:11111"))) == ["[en] error:11111"]


async def test_the_app_id_sets_a_limit_per_second_of_its_own(client: httpx.AsyncClient) -> None:
    codes = [(await asked(client, signed("谢谢", app_id="sandbox-qps-3"))).get("error_code") for _ in range(5)]
    assert codes == [None, None, None, "54003", "54003"]
    assert "error_code" not in await asked(client, signed("谢谢", app_id="sandbox-qps-4"))


async def test_a_query_string_is_read_as_a_form_is(client: httpx.AsyncClient) -> None:
    assert translations((await client.get(PATH, params=FORM)).json()) == ["Thank you"]


@pytest.mark.parametrize("body", [b"\xff\xfe%ff=%", b"q", b"&&&"])
async def test_bytes_that_are_no_form_are_an_error_of_baidu(client: httpx.AsyncClient, body: bytes) -> None:
    assert (await client.post(PATH, content=body)).json()["error_code"] == "54000"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 200), ("POST", "/", 405), ("GET", "/nowhere", 404), ("DELETE", PATH, 405), ("POST", PATH, 413)],
)
async def test_every_response_is_marked_as_the_sandbox(
    client: httpx.AsyncClient, method: str, path: str, status: int
) -> None:
    response = await client.request(method, path, content=b"x" * 70_000 if status == 413 else None)
    assert (response.status_code, response.headers["X-Sandbox"]) == (status, "toolchat")


async def test_the_index_page_states_that_all_data_is_invented(client: httpx.AsyncClient) -> None:
    page = (await client.get("/")).text
    assert (await client.get("/weatherapi/v1/forecast.json")).status_code != 404
    assert "All data here is invented" in page
    assert PATH in page


def test_a_sandbox_beside_the_service_serves_until_it_is_left() -> None:
    with running_sandbox() as url, httpx.Client(timeout=PATIENCE, verify=False) as client:
        assert client.get(url).status_code == 200
    with httpx.Client(verify=False) as client, pytest.raises(httpx.ConnectError):
        client.get(url)
