"""Spring AI as a peer: which Java there is, what is lacking, and how the peer is built."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.processes import ROOT, log_of

__all__ = ["build", "command", "lacking", "versions"]


_PROJECT = ROOT / "benchmarks" / "services" / "spring"
_JAR = _PROJECT / "target" / "peer.jar"
_NEEDED, _NEEDED_BY_VIRTUAL_THREADS = 17, 21


def command() -> Sequence[str]:
    """The program that serves; the heap is bounded, since it would take a quarter of the machine's memory."""
    return [_java(), "-Xmx1g", "-jar", str(_JAR)]


def lacking(*, virtual_threads: bool) -> str:
    """Why the peer cannot be run; empty when it can."""
    version = _java_version()
    needed = _NEEDED_BY_VIRTUAL_THREADS if virtual_threads else _NEEDED
    if not version:
        return f"java is not there: a JDK of {needed} or newer, on the path or in JAVA_HOME"
    if int(version.partition(".")[0]) < needed:
        return f"Java {version} is too old for it, {needed} is needed: JAVA_HOME chooses another JDK"
    return "" if _is_built() or shutil.which("mvn") else "mvn is not there: Maven builds this peer"


def build(log: Path) -> str:
    """Build the peer if its sources are newer; gives why it could not be built, or nothing."""
    if _is_built():
        return ""
    maven = [shutil.which("mvn") or "mvn", "--batch-mode", "--quiet", "--file", str(_PROJECT / "pom.xml"), "package"]
    with log.open("w") as output:
        code = subprocess.call(maven, stdout=output, stderr=output)
    return f"Maven could not build it\n{log_of(log)}" if code else ""


def versions() -> Mapping[str, str]:
    """What the report names."""
    pom = (_PROJECT / "pom.xml").read_text()
    boot = re.search(r"spring-boot-starter-parent</artifactId>\s*<version>([^<]+)<", pom)
    spring_ai = re.search(r"<spring-ai.version>([^<]+)<", pom)
    found = {"Spring AI": spring_ai, "Spring Boot": boot}
    return {name: match[1] for name, match in found.items() if match} | {"Java": _java_version()}


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else shutil.which("java") or ""


def _java_version() -> str:
    try:
        told = subprocess.run([_java(), "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    match = re.search(r'version "([0-9.]+)', told.stderr)
    return match[1] if match else ""


def _is_built() -> bool:
    sources = [_PROJECT / "pom.xml", *(each for each in (_PROJECT / "src").rglob("*") if each.is_file())]
    return _JAR.exists() and _JAR.stat().st_mtime > max(each.stat().st_mtime for each in sources)
