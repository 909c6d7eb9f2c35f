"""The time tool through both of its doors."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from app.tools.time.tools import GetCurrentTimeByTimeZoneIdService, TimeTools
from app.tools.time.zones import CityTime, described, time_zone_of
from toolchat.tool_calling.callback import ToolCallback, ToolResult
from toolchat.tool_calling.context import ToolContext
from toolchat.tool_calling.errors import ToolExecutionError
from toolchat.tool_calling.function_callback import FunctionToolCallback, MethodToolCallbackProvider


def function_tool() -> ToolCallback:
    return FunctionToolCallback.from_function(GetCurrentTimeByTimeZoneIdService())


def method_tool() -> ToolCallback:
    return MethodToolCallbackProvider(TimeTools()).tool_callbacks()[0]


TOOLS = pytest.mark.parametrize("tool", [function_tool(), method_tool()], ids=["function", "method"])


async def told(zone: str, tool: ToolCallback | None = None) -> ToolResult:
    return await (tool or function_tool()).result(json.dumps({"timeZoneId": zone}), ToolContext())


@pytest.fixture
def host_in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@TOOLS
async def test_the_answer_is_the_present_moment_in_the_sentence_of_the_documents(tool: ToolCallback) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    result = await told("Asia/Shanghai", tool)
    stamp = f"{result.data['date']} {result.data['time']}"
    moment = datetime.fromisoformat(f"{stamp}{result.data['utc_offset']}")
    assert before <= moment <= datetime.now(UTC)
    assert (result.data["time_zone"], result.data["utc_offset"]) == ("Asia/Shanghai", "+08:00")
    assert result.data["weekday"] == f"{moment:%A}"
    sentence = f"The current time zone is Asia/Shanghai and the current time is {stamp} CST"
    assert result.text == f"{sentence} ({moment:%A}, UTC+08:00)"


@pytest.mark.usefixtures("host_in_new_york")
@TOOLS
async def test_the_zone_of_the_host_plays_no_part(tool: ToolCallback) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    result = (await told("Asia/Tokyo", tool)).data
    moment = datetime.fromisoformat(f"{result['date']}T{result['time']}+09:00")
    assert before <= moment <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Asia/Shanghai", "Asia/Shanghai"),
        (" AMERICA/NEW_YORK ", "America/New_York"),
        ("PRC", "PRC"),
        ("Etc/GMT-8", "Etc/GMT-8"),
        ("UTC", "UTC"),
        ("Z", "UTC"),
        ("+00:00", "UTC"),
        ("UTC+8", "UTC+08:00"),
        ("UTC +8", "UTC+08:00"),
        ("ＵＴＣ＋８", "UTC+08:00"),
        ("GMT+8", "GMT+08:00"),
        ("GMT-3:30", "GMT-03:30"),
        ("+8", "UTC+08:00"),
        ("+08:00", "UTC+08:00"),
        ("-05:30", "UTC-05:30"),
        ("UTC\N{MINUS SIGN}5", "UTC-05:00"),
        ("+18:00", "UTC+18:00"),
    ],
)
async def test_ids_in_any_case_and_offsets_are_accepted(given: str, name: str) -> None:
    result = await told(given)
    assert result.data["time_zone"] == name
    if name.startswith(("UTC+", "UTC-", "GMT+", "GMT-")):
        assert result.data["utc_offset"] == name[3:]
        assert f" {name} (" in result.text


@TOOLS
@pytest.mark.parametrize(
    "given",
    [
        *("", " ", "localtime", "Localtime", "Factory", "posixrules", "posix/Asia/Tokyo", "right/UTC"),
        *("../etc/passwd", "/etc/localtime", "Asia/../Asia/Tokyo", "zone.tab", "tzdata.zi", "Asia", "America"),
        *("PST", "CST", "IST", "JST", "Beijing", "北京", "Asia/Beijing", "New York", "北京时间"),
        *("+19:00", "+18:01", "UTC+25", "UTC8", "UTC 8", "UTC0x8", "+8:60", "+800", "++8", "8", "UTC+٨"),
        *("x" * 300, "Asia/Shanghai\0", "\0", "Asia/Shanghai" + " " * 100),
    ],
)
async def test_everything_else_is_refused_in_words_that_the_model_can_act_on(tool: ToolCallback, given: str) -> None:
    with pytest.raises(ToolExecutionError) as failure:
        await told(given, tool)
    assert failure.value.kind == "unknown-time-zone"
    assert failure.value.hint is not None
    assert failure.value.hint.endswith("use an IANA id such as Asia/Shanghai, or an offset such as UTC+08:00")
    assert len(failure.value.as_result()) < 600


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("Beijing", ("Asia/Shanghai",)),
        ("北京", ("Asia/Shanghai",)),
        ("New York", ("America/New_York",)),
        ("CST", ("Asia/Shanghai", "America/Chicago", "America/Havana")),
        ("PST", ("America/Los_Angeles",)),
        ("Shanghia", ("Asia/Shanghai",)),
        ("zzzz", ()),
        ("UTC8", ()),
    ],
)
async def test_the_hint_of_a_refusal_names_the_nearest_ids(given: str, near: tuple[str, ...]) -> None:
    with pytest.raises(ToolExecutionError) as failure:
        await told(given)
    assert failure.value.hint is not None
    assert failure.value.hint.startswith("did you mean " + " or ".join(near) if near else "use an IANA id")


@pytest.mark.parametrize(
    ("zone", "instant", "date", "clock", "offset", "weekday", "abbreviation"),
    [
        ("America/New_York", "2026-03-08T06:59:59", "2026-03-08", "01:59:59", "-05:00", "Sunday", "EST"),
        ("America/New_York", "2026-03-08T07:00:00", "2026-03-08", "03:00:00", "-04:00", "Sunday", "EDT"),
        ("America/New_York", "2026-11-01T05:30:00", "2026-11-01", "01:30:00", "-04:00", "Sunday", "EDT"),
        ("America/New_York", "2026-11-01T06:30:00", "2026-11-01", "01:30:00", "-05:00", "Sunday", "EST"),
        ("Asia/Shanghai", "2026-12-31T16:00:00", "2027-01-01", "00:00:00", "+08:00", "Friday", "CST"),
        ("Asia/Kathmandu", "2026-07-01T12:00:00", "2026-07-01", "17:45:00", "+05:45", "Wednesday", "+0545"),
        ("Pacific/Kiritimati", "2026-12-31T10:00:00", "2027-01-01", "00:00:00", "+14:00", "Friday", "+14"),
        ("GMT-03:30", "2028-02-29T02:00:00", "2028-02-28", "22:30:00", "-03:30", "Monday", "GMT-03:30"),
        ("UTC", "2026-07-01T12:00:00", "2026-07-01", "12:00:00", "+00:00", "Wednesday", "UTC"),
    ],
)
def test_daylight_saving_and_the_turn_of_the_day_are_the_zones_own(
    zone: str, instant: str, date: str, clock: str, offset: str, weekday: str, abbreviation: str
) -> None:
    found = time_zone_of(zone)
    answer = described(found, datetime.fromisoformat(f"{instant}.987+00:00").astimezone(found))
    assert answer.data == CityTime(zone, date, clock, weekday, offset)
    assert answer.text.endswith(f"{date} {clock} {abbreviation} ({weekday}, UTC{offset})")
