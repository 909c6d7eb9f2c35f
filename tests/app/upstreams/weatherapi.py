"""A fake of WeatherAPI's ``forecast.json``: its whole wire format, with invented data.

``GET /weatherapi/v1/forecast.json`` takes ``q``, ``days``, ``lang`` and ``hour`` as the original does, and the key in
the header or the parameter ``key``. Every answer is marked: the country is ``Sandbox`` and the region ends in
``(sandbox)``. The weather of a place is the same for all of its names and languages: the days' values hold all day, the
current ones for an hour of local time. It knows the places of :mod:`app.places` by name, with or
without region and country, but no coordinates or postcodes. ``days`` above 3 returns 3, as the free plan does.

Faults on demand, by the key or by ``q`` (without the place then):

========================  ==============================================================
key                       answer
========================  ==============================================================
none                      401 with code 1002
``sandbox-pro``           the forecast, up to 14 days
``error-<code>``          that error; 2009 only for more than 3 days
anything else             the forecast
========================  ==============================================================

========================  ==============================================================
``q``                     answer
========================  ==============================================================
none                      400 with code 1003
``error <code>``          that error, with its HTTP status
``status <number>``       that HTTP status with an HTML body
``body html``             200 with an HTML page
``body broken``           200 with JSON that ends in the middle
``body shape``            200 with JSON of another shape
``body huge``             200 with 2 MB of JSON
a known place             the forecast
anything else             400 with code 1006
========================  ==============================================================
"""

import re

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from app.places.gazetteer import Place, belongs, find_place, known_places, lesser_places
from tests.app.upstreams.invented_weather import invented_forecast
from toolchat.tool_calling.text_normalization import normalize_name

_FREE_DAYS = 3
_MOST_DAYS = 14
_PAGE = "<!doctype html><title>Sandbox</title><p>Not JSON."

_ERRORS = {
    1002: (401, "API key is invalid or not provided."),
    1003: (400, "Parameter q is missing."),
    1005: (400, "API URL is invalid."),
    1006: (400, "No matching location found."),
    2006: (401, "API key provided is invalid."),
    2007: (403, "API key has exceeded calls per month quota."),
    2008: (403, "API key has been disabled."),
    2009: (403, "API key does not have access to the resource."),
    9000: (400, "Json body passed in bulk request is invalid."),
    9001: (400, "Json body contains too many locations for bulk request."),
    9999: (400, "Internal application error."),
}


async def forecast(request: Request) -> Response:
    """Answer as ``forecast.json`` does."""
    key = request.headers.get("key") or request.query_params.get("key", "")
    q = request.query_params.get("q", "").strip()
    asked = _whole_number(request.query_params.get("days"), 1, _MOST_DAYS) or 1
    if fault := _fault(key, q.casefold(), asked):
        return fault
    place = resolve_place(q)
    if place is None:
        return _error(1006)
    days = asked if key == "sandbox-pro" else min(asked, _FREE_DAYS)
    chinese = request.query_params.get("lang", "").startswith("zh")
    return JSONResponse(invented_forecast(place, days, _whole_number(request.query_params.get("hour"), 0, 23), chinese))


routes: list[BaseRoute] = [Route("/weatherapi/v1/forecast.json", forecast, methods=["GET"])]


def resolve_place(name: str) -> Place | None:
    """Find the place of a name with or without region and country: ``Suzhou, Anhui, China``."""
    first, *around = (part.strip() for part in normalize_name(name).replace("'", "").split(","))
    spelled = [
        each for each in (*lesser_places(), *known_places()) if normalize_name(each.name.replace("'", "")) == first
    ]
    candidates = filter(None, (find_place(name), find_place(first), *spelled))
    return next((each for each in candidates if all(belongs(one, each) for one in around)), None)


def _fault(key: str, q: str, days: int) -> Response | None:
    if not key:
        return _error(1002)
    if wanted := re.fullmatch(r"error-(\d{4})", key):
        code = int(wanted[1])
        return _error(code) if code != 2009 or days > _FREE_DAYS else None
    if not q:
        return _error(1003)
    if wanted := re.fullmatch(r"(error|status) (\d{3,4})", q):
        number = int(wanted[2])
        return _error(number) if wanted[1] == "error" else HTMLResponse(_PAGE, min(max(number, 200), 599))
    return _odd_body(q)


def _error(code: int) -> Response:
    status, message = _ERRORS.get(code, (400, "Unknown."))
    return JSONResponse({"error": {"code": code, "message": message}}, status)


def _odd_body(q: str) -> Response | None:
    bodies = {
        "body broken": b'{"location":{"name":"Beijing","region":"Bei',
        "body shape": b'{"location":[],"current":"21 degrees","forecast":{"forecastday":{"day":21}}}',
        # Built only if it is requested.
        "body huge": b'{"location":"' + b"x" * 2_000_000 * (q == "body huge") + b'"}',
    }
    if q == "body html":
        return HTMLResponse(_PAGE)
    return Response(bodies[q], media_type="application/json") if q in bodies else None


def _whole_number(text: str | None, least: int, most: int) -> int | None:
    """A whole number within the range; ``None`` if the text is not one."""
    number = int(text) if text and re.fullmatch("-?[0-9]{1,6}", text) else None
    return number if number is None else min(max(number, least), most)
