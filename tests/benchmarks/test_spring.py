"""Spring AI as a peer, without Java: what is started, and what is said where something is lacking."""

from pathlib import Path

import pytest

from benchmarks import java
from benchmarks.catalogue import SERVICES
from tests.command_line import ROOT

PROJECT = ROOT / "benchmarks" / "services" / "spring"


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty path; gives the folder that stands for its JDK."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    return tmp_path


def has_java(home: Path, version: str) -> None:
    program(home / "jdk" / "bin", "java", f"echo 'openjdk version \"{version}\" 2026-01-01' >&2")


@pytest.mark.parametrize(
    ("version", "platform", "virtual"),
    [
        ("", "java is not there: a JDK of 17 or newer", "java is not there: a JDK of 21 or newer"),
        ("11.0.2", "Java 11.0.2 is too old for it, 17 is needed", "Java 11.0.2 is too old for it, 21 is needed"),
        ("17.0.15", "mvn is not there", "Java 17.0.15 is too old for it, 21 is needed"),
        ("25", "mvn is not there", "mvn is not there"),
    ],
)
def test_missing_requirements_are_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, version: str, platform: str, virtual: str
) -> None:
    monkeypatch.setattr(java, "_JAR", home / "peer.jar")
    if version:
        has_java(home, version)
    assert SERVICES["spring"].missing().startswith(platform)
    assert SERVICES["spring-virtual"].missing().startswith(virtual)


def test_with_java_and_maven_nothing_is_lacking_and_a_failed_build_shows_mavens_words(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "_JAR", home / "peer.jar")
    has_java(home, "25.0.1")
    program(home / "path", "mvn", "echo 'no such artifact'; exit 1")
    assert SERVICES["spring-virtual"].missing() == ""
    assert java.build(home / "maven.log") == "Maven could not build it\nno such artifact"
