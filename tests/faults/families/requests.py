"""Malformed requests, each rejected at once with the reason."""

from tests.faults.fault import Bound, Fault, Measure, enter, held
from tests.faults.stage import Stage
from tests.faults.wire import exchange, question

_JSON = {"Content-Type": "application/json"}
_LONG = b"x" * 70_000


def _get(path: str, **headers: str) -> bytes:
    return question(path, headers={name.replace("_", "-"): value for name, value in headers.items()})


def _post(body: bytes, path: str = "/time/chat", **headers: str) -> bytes:
    fields = _JSON | {name.replace("_", "-"): value for name, value in headers.items()}
    return question(path, method="POST", headers=fields, body=body)


def _raw(text: str) -> bytes:
    return text.replace("\n", "\r\n").encode()


_HOST = "Host: 127.0.0.1\nConnection: close\n"


def _chunks(body: str, fields: str = "") -> bytes:
    head = f"POST /time/chat HTTP/1.1\n{_HOST}Content-Type: application/json\n{fields}Transfer-Encoding: chunked\n\n"
    return _raw(head + body)


_REFUSED: list[tuple[str, str, bytes, int, str]] = [
    ("no-host", "HTTP/1.1 without `Host`", _raw("GET / HTTP/1.1\nConnection: close\n\n"), 400, ""),
    ("two-hosts", "two `Host` fields", _raw(f"GET / HTTP/1.1\n{_HOST}Host: localhost\n\n"), 400, ""),
    ("foreign-host", "`Host` of another site (DNS rebinding)",
     _get("/time/chat", Host="evil.example"), 421, "misdirected"),
    ("host-with-a-user", "user information in `Host`", _get("/time/chat", Host="127.0.0.1@evil.example"), 421, ""),
    ("length-and-chunks", "both `Content-Length` and chunks (smuggling)",
     _chunks("0\n\nGET / HTTP/1.1\n\n", "Content-Length: 5\n"), 400, ""),
    ("two-lengths", "two different `Content-Length`",
     _raw(f"POST /time/chat HTTP/1.1\n{_HOST}Content-Length: 5\nContent-Length: 6\n\nhello!"), 400, ""),
    ("negative-length", "a negative `Content-Length`",
     _raw(f"POST /time/chat HTTP/1.1\n{_HOST}Content-Length: -5\n\n"), 400, ""),
    ("bad-chunk-size", "a chunk whose size is no number",
     _chunks("zz\n{}\n0\n\n"), 400, ""),
    ("folded-header", "a header folded over two lines", _raw(f"GET / HTTP/1.1\n{_HOST}X-A: b\n c\n\n"), 400, ""),
    ("header-without-colon", "a header line without a colon", _raw(f"GET / HTTP/1.1\n{_HOST}nonsense\n\n"), 400, ""),
    ("no-http", "bytes that are no HTTP", bytes(range(128, 256)) + b"\r\n\r\n", 400, ""),
    ("tls-hello", "a TLS hello on the plain port",
     bytes.fromhex("16030100a1010000 9d0303") + bytes(150) + b"\r\n\r\n", 400, ""),
    ("huge-header", "one header of 70 KB", _get("/time/chat", X_Big=_LONG.decode()), 431, "too-large"),
    ("many-headers", "20,000 headers",
     _get("/time/chat", **{f"X-{n}": "1" for n in range(20_000)}), 431, "too-large"),
    ("long-url", "a URL of 70 KB", _get("/time/chat?query=" + _LONG.decode()), 414, "too-large"),
    ("long-body", "a body of 420 KB", _post(b'{"query": "' + 6 * _LONG + b'"}'), 413, "too-large"),
    ("announced-too-long", "a body announced with 1 TB", _post(b"", Content_Length=str(2**40)), 413, "too-large"),
    ("not-json", "a body with invalid JSON", _post(b"{'query': 1}"), 400, "invalid-request"),
    ("bad-utf8", "a body that is no UTF-8", _post(b'{"query": "\xff\xfe"}'), 400, "invalid-request"),
    ("utf16-body", "a body in UTF-16", _post('{"query": "hi"}'.encode("utf-16")), 400, "invalid-request"),
    ("deep-json", "JSON nested 30,000 deep",
     _post(b'{"query":' + b"[" * 30_000 + b"]" * 30_000 + b"}"), 400, "invalid-request"),
    ("huge-integer", "an integer of 5,000 digits", _post(b'{"query": ' + b"9" * 5000 + b"}"), 400, "invalid-request"),
    ("nan", "NaN for the question", _post(b'{"query": NaN}'), 400, "invalid-request"),
    ("lone-surrogate", "half of a surrogate pair in the question", _post(b'{"query": "\\ud800"}'), 422, "validation"),
    ("nul-in-the-query", "a NUL in the question", _get("/time/chat?query=%00"), 400, "invalid-request"),
    ("bad-percent", "bytes in the query that are no UTF-8", _get("/time/chat?query=%ff%fe"), 400, "invalid-request"),
    ("an-array", "an array for a body", _post(b"[1]"), 422, "validation"),
    ("query-twice", "the question given twice", _get("/time/chat?query=a&query=b"), 422, "validation"),
    ("blank-question", "a question of blanks", _get("/time/chat?query=%20%20"), 422, "validation"),
    ("one-too-long", "a question of 4,001 characters", _get("/time/chat?query=" + "x" * 4001), 422, "validation"),
    ("mistyped-parameter", "a mistyped parameter", _get("/time/chat?qurey=hi"), 422, "validation"),
    ("session-injection", "CR and LF in a session's id",
     _get("/chat?userInput=hi&sessionId=a%0d%0aX-Evil:1"), 422, "validation"),
    ("ten-thousand-parameters", "10,000 parameters",
     _get("/time/chat?" + "&".join(f"a{n}=1" for n in range(5_000))), 422, "validation"),
    ("wrong-media-type", "a form in place of JSON",
     _post(b"query=hi", Content_Type="text/plain"), 415, "unsupported-media-type"),
    ("unacceptable", "`Accept: image/png`", _get("/time/chat", Accept="image/png"), 406, "not-acceptable"),
    ("trace", "TRACE", _raw(f"TRACE /time/chat HTTP/1.1\n{_HOST}\n"), 405, "method-not-allowed"),
    ("path-tricks", "`..` in the path", _get("/docs/..%2f..%2f..%2fetc/passwd"), 404, "not-found"),
    ("cross-site-fetch", "another site's page asks in a session (Fetch Metadata)",
     _get("/chat?userInput=hi", Sec_Fetch_Site="cross-site"), 403, "cross-site"),
    ("cross-site-origin", "another site's page asks over plain HTTP (`Origin` alone)",
     _get("/chat?userInput=hi", Origin="http://evil.example"), 403, "cross-site"),
    ("cross-site-referer", "another site's page asks over plain HTTP (`Referer` alone)",
     _get("/chat?userInput=hi", Referer="http://evil.example/a"), 403, "cross-site"),
    ("same-site-fetch", "a page of another host of the same site asks",
     _get("/chat?userInput=hi", Sec_Fetch_Site="same-site", Origin="http://other.localhost"), 403, "cross-site"),
    ("an-image-with-a-tool", "another site's page has a route of the documents' examples as an image",
     _get("/tool/control", Sec_Fetch_Site="cross-site", Sec_Fetch_Dest="image"), 403, "cross-site"),
    ("a-completion-as-text", "a completion that is sent as text, which needs no CORS",
     _post(b'{"messages":[{"role":"user","content":"hi"}]}', "/v1/chat/completions", Content_Type="text/plain"),
     415, ""),
    ("a-malformed-tenant", "a path for a tenant", _get("/chat?userInput=hi", X_Tenant_ID="../a"), 422, "validation"),
    ("prefetch", "a browser's prefetch of a question in a session",
     _get("/chat?userInput=hi", Sec_Purpose="prefetch"), 403, "cross-site"),
    ("alarm-by-get", "GET on the route that sets an alarm", _get("/tool/alarm?query=hi"), 405, "method-not-allowed"),
    ("no-idempotency-key", "an alarm without `Idempotency-Key`", _post(b"{}", "/tool/alarm"), 422, "validation"),
]  # fmt: skip


def _refused(sent: bytes, status: int, code: str) -> Measure:
    async def measure(stage: Stage) -> float:
        service = await stage.service()
        reply = await exchange(service.port, sent)
        held(reply.status == status, f"answered {reply.status} {reply.code or reply.text[:80]}")
        held(code in ("", reply.code), f"answered with the code {reply.code!r}")
        held(not stage.upstream.calls, "the model was asked")
        return reply.seconds * 1000

    return measure


for _name, _done, _sent, _status, _code in _REFUSED:
    _users = f"{_status}{f' `{_code}`' * bool(_code)}; no model is asked"
    enter(
        Fault(
            "requests", _name, _done[0].upper() + _done[1:], _users, "ms until refused", Bound(None, 2000),
            _refused(_sent, _status, _code), fast=True, limit=30,
        )
    )  # fmt: skip
