"""``.env.example`` and the page about the configuration name every variable, with its default and one line."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from scripts import configuration_page
from scripts.env_example import FILE, documented, render, settings_classes, variables
from scripts.setting_groups import GROUPS
from toolchat.service.observability.tracing import TracingSettings
from toolchat.service.settings.base import EnvironmentSettings


def test_the_file_and_the_page_match_the_settings_classes() -> None:
    page = configuration_page.PAGE.read_text(encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == render(), "run `make docs`"
    assert page == configuration_page.render(), "run `make docs`"
    for title, beside in configuration_page.BESIDE.items():
        assert beside.read_text(encoding="utf-8") == configuration_page.render_beside(title), "run `make docs`"


def test_every_variable_is_in_one_group_and_the_page_stays_short() -> None:
    names = [name for _, group in GROUPS.values() for name in group.split()]
    rows = [row.split(" | ")[0] for row in configuration_page.render().splitlines() if row.startswith("| `")]
    others = "".join(map(configuration_page.render_beside, configuration_page.BESIDE))
    beside = re.findall(r"^\| `([A-Z_]+)` \|", others, re.M)

    assert sorted(names) == sorted(documented())
    assert sorted(name for row in rows for name in re.findall(r"`([A-Z_]+)`", row)) == sorted({*names} - {*beside})
    assert len(rows) <= 71
    assert len(next(iter(GROUPS.values()))[1].split()) == 10


def test_every_variable_has_one_line_that_explains_it() -> None:
    lines = FILE.read_text(encoding="utf-8").splitlines()
    explained = [
        after.removeprefix("#").partition("=")[0]
        for before, after in pairwise(lines)
        if before.startswith("# ") and re.match(r"#?[A-Z]", after)
    ]

    own = [(cls, field) for where in variables().values() for cls, field in where if cls is not TracingSettings]
    fields = [cls.model_fields[field] for cls, field in own]

    assert sorted(explained) == sorted((*documented(), "OTEL_EXPORTER_OTLP_ENDPOINT"))
    assert [field for field in fields if not field.description] == []


def test_a_variable_of_several_settings_means_the_same_in_all_of_them() -> None:
    def meaning(cls: type[EnvironmentSettings], field: str) -> tuple[object, str | None]:
        return cls.model_fields[field].default, cls.model_fields[field].description

    meanings = {name: {meaning(*each) for each in where} for name, where in variables().items()}

    assert [name for name, found in meanings.items() if len(found) > 1] == []


def test_a_copy_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _clean_environment(monkeypatch)

    assert [cls(_env_file=FILE) for cls in settings_classes()] == _defaults()


def test_the_defaults_that_it_shows_are_read_back_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _clean_environment(monkeypatch)
    switched_on = tmp_path / "env"
    shown = FILE.read_text(encoding="utf-8").partition("## Traces")[0]  # whose address is no default
    switched_on.write_text(re.sub(r"^#(?=[A-Z])", "", shown, flags=re.M), encoding="utf-8")

    assert [cls(_env_file=switched_on) for cls in settings_classes()] == _defaults()


def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in variables():
        monkeypatch.delenv(name, raising=False)


def _defaults() -> list[EnvironmentSettings]:
    return [cls(_env_file=None) for cls in settings_classes()]
