"""The text format of Prometheus (0.0.4), read by its grammar and not by goodwill."""

import re
from collections.abc import Iterator, Mapping

import httpx

__all__ = ["Figures", "Labels", "figures_of", "grown", "parsed"]

Labels = tuple[tuple[str, str], ...]
Figures = dict[tuple[str, Labels], float]
"""Every sample by its name and its labels, these in the order of their names."""

_HELP = re.compile(r"# HELP ([a-z_]+) (\S.*)")
_TYPE = re.compile(r"# TYPE ([a-z_]+) (counter|gauge|histogram)")
_LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"')
_SAMPLE = re.compile(rf"([a-z_]+)(?:\{{({_LABEL.pattern}(?:,{_LABEL.pattern})*)\}})? (\S+)")
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


async def figures_of(client: httpx.AsyncClient) -> Figures:
    """What ``/metrics`` tells now."""
    answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {key: value for family in parsed(answer.text).values() for key, value in family[1].items()}


def grown(before: Figures, after: Figures, name: str) -> Mapping[Labels, float]:
    """By how much the samples of a name have grown; those that have not are left out."""
    both = {labels: value - before.get((each, labels), 0) for (each, labels), value in after.items() if each == name}
    return {labels: value for labels, value in both.items() if value}


def parsed(text: str) -> dict[str, tuple[str, Figures]]:
    """Each family by its name: its type and its samples; asserts whatever the format asks for."""
    assert text.endswith("\n")
    families: dict[str, tuple[str, Figures]] = {}
    lines = iter(text.removesuffix("\n").split("\n"))
    line = next(lines, "")
    while line:
        told, typed = _HELP.fullmatch(line), _TYPE.fullmatch(next(lines))
        assert told, line
        assert typed, line
        assert told[1] == typed[1], line
        assert told[1] not in families, line
        samples: Figures = {}
        while (line := next(lines, "")) and not line.startswith("#"):
            name, labels, value = _sample(line)
            assert name.removesuffix(_suffix(name, typed[2])) == told[1], line
            assert (name, labels) not in samples, line
            samples[name, labels] = value
        families[told[1]] = typed[2], samples
    return families


def _suffix(name: str, kind: str) -> str:
    return next((each for each in ("_bucket", "_sum", "_count") if kind == "histogram" and name.endswith(each)), "")


def _sample(line: str) -> tuple[str, Labels, float]:
    found = _SAMPLE.fullmatch(line)
    assert found, line
    labels = tuple(sorted(_labels(found[2] or "")))
    return found[1], labels, float(found.groups()[-1])


def _labels(text: str) -> Iterator[tuple[str, str]]:
    for name, value in _LABEL.findall(text):
        yield name, re.sub(r"\\.", lambda escape: _ESCAPES[escape[0]], value)
