"""The nginx that stands before the replicas, as Compose starts it, and replicas that behave in every way."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.deploy.manifests import DEPLOY
from tests.ports import reserved, silent_port
from tests.programs import require
from tests.service.api.sessions.replicas import listens
from tests.serving import client_of
from tests.waiting import PATIENCE, until
from toolchat.errors import BodyTooLarge
from toolchat.service.api.problems import MAX_RETRY_AFTER, PROBLEM_MEDIA_TYPE, Problem
from toolchat.service.protocols.wire import MAX_BODY_BYTES

CONFIGURATION = (DEPLOY / "compose/nginx.conf").read_text(encoding="utf-8")
QUESTION = "/chat?userInput=confidential"
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Replica:
    """A server that answers every request as it is told, and keeps what it was asked."""

    def __init__(self, answer: Answer) -> None:
        self.asked: list[str] = []
        self._answer = answer

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[int, None]:
        async with await asyncio.start_server(self._serve, "127.0.0.1") as server:
            yield server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
            await self._answer(reader, writer)
        finally:
            writer.close()


def saying(status: str, text: str) -> Answer:
    """Answers with a problem document or a text."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status}\r\nRetry-After: 1\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
        await writer.drain()

    return answer


async def dying(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Is gone as soon as it has read the question."""


@asynccontextmanager
async def nginx(folder: Path, *ports: int, silence: str = "630s") -> AsyncGenerator[httpx.AsyncClient, None]:
    """Start nginx as Compose does, but for where it listens and finds its replicas and its folder for files."""
    (limits,) = re.findall(r"server toolchat:8083 resolve(.*?);", CONFIGURATION)
    servers = " ".join(f"server 127.0.0.1:{port}{limits};" for port in ports)
    with reserved() as holder:
        port = holder.getsockname()[1]
        changed = re.sub(r"resolver .*|server toolchat:8083 .*", "", CONFIGURATION).replace("/tmp/", f"{folder}/")
        changed = changed.replace("zone toolchat 64k;", f"zone toolchat 64k; {servers}")
        changed = changed.replace("listen 8080;", f"listen 127.0.0.1:{port};").replace(" 630s", f" {silence}")
        (folder / "nginx.conf").write_text(re.sub(r"/dev/std(out|err)", rf"{folder}/\1.log", changed))
        command = ["-p", str(folder), "-c", "nginx.conf", "-e", "start.log", "-g", "daemon off;"]
        process = await asyncio.create_subprocess_exec(require("nginx"), *command)
        try:
            await until(lambda: listens(port))
            async with client_of(f"http://127.0.0.1:{port}") as client:
                yield client
        finally:
            process.terminate()
            await asyncio.wait_for(process.wait(), PATIENCE)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_questions_for_a_replica_that_is_gone_are_all_answered_by_the_other(method: str, tmp_path: Path) -> None:
    there = Replica(saying("200 OK", "an answer"))
    async with there.listening() as port:
        with silent_port() as gone:
            async with nginx(tmp_path, gone, port) as client:
                answers = await asyncio.gather(*(client.request(method, QUESTION) for _ in range(30)))
    assert [each.text for each in answers] == ["an answer"] * 30
    assert len(there.asked) == 30


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_question_that_a_replica_has_read_is_never_put_again(method: str, tmp_path: Path) -> None:
    # Its tools may have run, and the conversation may have it; nginx by itself would put a GET to the next replica.
    first, second = Replica(dying), Replica(dying)
    async with first.listening() as one, second.listening() as two, nginx(tmp_path, one, two) as client:
        answer = await client.request(method, QUESTION)
    assert answer.status_code == 502
    assert len(first.asked + second.asked) == 1


def test_every_proxy_lets_the_longest_body_through_to_be_refused_by_the_service() -> None:
    ingress = (DEPLOY / "kubernetes/example/ingress.yaml").read_text(encoding="utf-8")
    limits = re.findall(r"(?:client_max_body_size|proxy-body-size:) (\d+)m\b", CONFIGURATION + ingress)
    assert len(limits) == 2
    assert all(int(each) * 1024 * 1024 > MAX_BODY_BYTES for each in limits)


async def test_a_body_that_is_too_long_for_nginx_gets_a_problem_document(tmp_path: Path) -> None:
    there = Replica(saying("200 OK", "an answer"))
    async with there.listening() as port, nginx(tmp_path, port) as client:
        answer = await client.post("/v1/chat/completions", content=b"x" * 10 * 1024 * 1024)
    problem = Problem.model_validate_json(answer.content)
    assert (answer.status_code, problem.code, problem.retryable) == (413, BodyTooLarge.code, False)
    assert there.asked == []


async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Reads the question, and says nothing until nobody waits any more."""
    await reader.read()


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [(dying, 502, "bad-gateway"), (silent, 504, "gateway-timeout"), (None, 502, "bad-gateway")],
)
async def test_errors_of_nginx_itself_are_problem_documents(
    answer: Answer | None, status: int, code: str, tmp_path: Path
) -> None:
    # With the id by which the replica knows the request, and when to ask again.
    replica = Replica(answer or dying)
    async with replica.listening() as port:
        with silent_port() as gone:
            async with nginx(tmp_path, port if answer else gone, silence="200ms") as client:
                told = await client.get(QUESTION, headers={"X-Request-ID": "asked-1"})
                other = await client.get(QUESTION, headers={"X-Request-ID": 'made "up'})

    problem = Problem.model_validate_json(told.content)
    assert (told.status_code, problem.status, problem.code, problem.retryable) == (status, status, code, True)
    assert problem.type == f"urn:toolchat:problem:{code}"
    assert problem.request_id == told.headers["x-request-id"] == "asked-1"
    assert told.headers["content-type"] == PROBLEM_MEDIA_TYPE
    assert 0 < int(told.headers["retry-after"]) <= MAX_RETRY_AFTER
    assert re.fullmatch(r"\w{32}", Problem.model_validate_json(other.content).request_id)
    assert [re.findall("X-Request-ID: (.*)\r", each)[0] for each in replica.asked] == (
        ["asked-1", other.headers["x-request-id"]] if answer else []
    )


@pytest.mark.parametrize("status", ["502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"])
async def test_an_error_of_a_replica_reaches_the_client_and_is_not_retried_elsewhere(
    status: str, tmp_path: Path
) -> None:
    first, second = (Replica(saying(status, '{"code":"one of ours"}')) for _ in range(2))
    async with first.listening() as one, second.listening() as two, nginx(tmp_path, one, two) as client:
        answer = await client.get(QUESTION)
    assert (f"{answer.status_code} {answer.reason_phrase}", answer.json()) == (status, {"code": "one of ours"})
    assert answer.headers["retry-after"] == "1"
    assert len(first.asked + second.asked) == 1


async def test_events_come_while_the_answer_is_still_written_and_a_cut_one_does_not_look_whole(tmp_path: Path) -> None:
    seen = asyncio.Event()

    async def stream(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Accel-Buffering: no\r\nTransfer-Encoding: chunked"
        )
        writer.write(f"{head}\r\n\r\n6\r\none\n\n\n\r\n".encode())
        await asyncio.wait_for(seen.wait(), PATIENCE)
        writer.write(b"6\r\ntwo\n\n\n\r\n")
        await writer.drain()

    async with (
        Replica(stream).listening() as port,
        nginx(tmp_path, port) as client,
        client.stream("GET", QUESTION) as answer,
    ):
        pieces = answer.aiter_text()
        assert await asyncio.wait_for(anext(pieces), PATIENCE) == "one\n\n\n"
        seen.set()
        assert await anext(pieces) == "two\n\n\n"
        with pytest.raises(httpx.RemoteProtocolError):
            await anext(pieces)


async def test_a_client_that_leaves_ends_its_question_at_the_replica(tmp_path: Path) -> None:
    left = asyncio.Event()

    async def waits(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()
        left.set()

    waiting = Replica(waits)

    async def is_asked() -> bool:
        return bool(waiting.asked)

    async with waiting.listening() as port, nginx(tmp_path, port) as client:
        question = asyncio.create_task(client.get(QUESTION))
        await until(is_asked)
        question.cancel()
        await asyncio.wait_for(left.wait(), PATIENCE)


async def test_the_client_address_and_host_are_forwarded_and_cannot_be_forged(tmp_path: Path) -> None:
    there = Replica(saying("200 OK", "an answer"))
    async with there.listening() as port, nginx(tmp_path, port) as client:
        forged = {"X-Forwarded-For": "203.0.113.9", "Forwarded": "for=203.0.113.9"}
        forged |= {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}
        await client.get(QUESTION, headers={"Host": "chat.example.org:8443", **forged})
    (asked,) = there.asked
    assert re.findall(r"^(Host|X-Forwarded-\w+|Forwarded): (.*)\r$", asked, flags=re.M | re.I) == [
        ("Host", "chat.example.org:8443"),
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Forwarded-Proto", "http"),
    ]


async def test_no_question_is_logged_whatever_its_outcome(tmp_path: Path) -> None:
    with silent_port() as gone:
        async with Replica(dying).listening() as port, nginx(tmp_path, gone, port) as client:
            assert [(await client.get(QUESTION)).status_code for _ in range(2)] == [502, 502]
    written = {name: (tmp_path / f"{name}.log").read_text() for name in ("out", "err", "start")}
    assert written["out"].count('"GET /chat" 502') == 2
    assert [name for name, text in written.items() if "confidential" in text] == []
