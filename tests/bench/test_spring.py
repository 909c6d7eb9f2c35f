"""Spring AI as a peer, without Java: what is started, and what is said where something is lacking."""

import re
from pathlib import Path

import pytest

from bench import java
from bench.catalogue import SERVICES
from tests.bench.test_smoke import bench
from tests.command_line import ROOT

PROJECT = ROOT / "bench" / "services" / "spring"


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


def test_both_kinds_of_threads_are_services_of_the_benchmark(home: Path) -> None:
    # One program; what differs is told by the environment, under the names that the project reads.
    platform, virtual = SERVICES["spring"], SERVICES["spring-virtual"]
    settings = (PROJECT / "src" / "main" / "resources" / "application.properties").read_text()
    environments = [dict(each.environment(8090, "http://127.0.0.1:9")) for each in (platform, virtual)]
    assert [each.pop("BENCH_VIRTUAL_THREADS") for each in environments] == ["false", "true"]
    assert environments == [{"SERVER_PORT": "8090", "BENCH_UPSTREAM": "http://127.0.0.1:9"}] * 2
    assert set(re.findall(r"\$\{([A-Z_]+)", settings)) == {*environments[0], "BENCH_VIRTUAL_THREADS"}
    assert platform.command(8090) == virtual.command(8090)
    assert platform.command(8090)[0] == str(home / "jdk" / "bin" / "java")


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


def test_a_peer_that_is_newer_than_its_sources_is_not_built_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_JAR", home / "peer.jar")
    (home / "peer.jar").touch()
    has_java(home, "17.0.1")
    assert SERVICES["spring"].missing() == ""
    assert java.build(home / "maven.log") == ""


def test_the_report_names_the_required_versions(home: Path) -> None:
    has_java(home, "25.0.1")
    versions = java.versions()
    assert list(versions) == ["Spring AI", "Spring Boot", "Java"]
    assert versions["Java"] == "25.0.1"
    assert versions["Spring AI"].startswith("2.")


def test_a_run_without_java_reports_that_spring_was_not_measured(tmp_path: Path) -> None:
    done = bench("--smoke", "--only", "spring", cwd=tmp_path, JAVA_HOME=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("Not measured: spring: java is not there")


def test_the_project_names_no_registry_and_no_place_of_a_machine() -> None:
    sources = [each.read_text() for each in PROJECT.rglob("*") if each.is_file() and "target" not in each.parts]
    assert len(sources) == 3
    assert [each for each in sources if "<repository>" in each or "/usr/" in each or "/home/" in each] == []
