"""``.env.example`` names every variable, with its default and one line."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from app.settings import EnvironmentSettings, environment_name
from tests.deploy.env_example import FILE, render, settings_classes, variables

FIELDS = [(cls, name) for cls in settings_classes() for name in cls.model_fields]


def test_the_file_says_what_the_settings_classes_say() -> None:
    assert FILE.read_text(encoding="utf-8") == render(), "run `make env-example`"


def test_every_variable_has_one_line_that_explains_it() -> None:
    lines = FILE.read_text(encoding="utf-8").splitlines()
    explained = [
        after.removeprefix("#").partition("=")[0]
        for before, after in pairwise(lines)
        if before.startswith("# ") and re.match(r"#?[A-Z]", after)
    ]

    assert sorted(explained) == sorted(environment_name(cls, name) for cls, name in variables().values())
    assert [name for cls, name in FIELDS if not cls.model_fields[name].description] == []


def test_a_variable_of_several_settings_means_the_same_in_all_of_them() -> None:
    def meaning(cls: type[EnvironmentSettings], field: str) -> tuple[object, str | None]:
        return cls.model_fields[field].default, cls.model_fields[field].description

    assert [
        environment_name(cls, field)
        for cls, field in FIELDS
        if meaning(cls, field) != meaning(*variables()[environment_name(cls, field)])
    ] == []


def test_a_copy_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _clean_environment(monkeypatch)

    assert [cls(_env_file=FILE) for cls in settings_classes()] == _defaults()


def test_the_defaults_that_it_shows_are_read_back_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _clean_environment(monkeypatch)
    switched_on = tmp_path / "env"
    switched_on.write_text(re.sub(r"^#(?=[A-Z])", "", FILE.read_text(encoding="utf-8"), flags=re.M), encoding="utf-8")

    assert [cls(_env_file=switched_on) for cls in settings_classes()] == _defaults()


def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in variables():
        monkeypatch.delenv(name, raising=False)


def _defaults() -> list[EnvironmentSettings]:
    return [cls(_env_file=None) for cls in settings_classes()]
