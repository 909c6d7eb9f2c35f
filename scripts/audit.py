"""What the service is made of: known vulnerabilities, licences, and a list of its parts; run by ``.ci/nightly audit``.

Exits with 1 if a vulnerability is known, if the vulnerability service cannot be reached (``--offline`` allows that), or
if a licence does not allow the project to be shipped with the package.
"""

import argparse
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from pydantic_core import from_json

__all__ = ["ALLOWED", "LOCK", "licence_of", "licences", "main"]

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
PARTS = ROOT / "dist" / "sbom.cdx.json"
ALLOWED = re.compile(
    r"\b(MIT|BSD|Apache|PSF|Python Software Foundation|Python-2\.0|MPL|Mozilla|ISC|Unlicense|0BSD|CC0)\b"
    r"|Redistribution and use in source and binary forms",  # how BSD's begins, where only its text is given
    re.IGNORECASE,
)
"""Licences that ask for a notice at most, or, as Mozilla's, for the source of what was changed in the part itself."""


def main() -> int:
    """Do all three, and print the results."""
    parser = argparse.ArgumentParser(description="Check known vulnerabilities and licences, and list all parts.")
    parser.add_argument("--offline", action="store_true", help="allow that the vulnerability service is unreachable")
    offline: bool = parser.parse_args().offline
    parts = _list_of_parts()
    refused = {name: told for name, told in licences().items() if not ALLOWED.search(told)}
    _say(f"licences: {len(licences())} packages" + (f", NOT ALLOWED: {refused}" if refused else ", all allowed"))
    return max(parts, int(bool(refused)), _vulnerabilities(offline=offline))


def licences() -> dict[str, str]:
    """The licence of every package of the lock file that is installed here, by its name."""
    names = re.findall(r"^([a-z0-9._-]+)==", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    found = {name: licence_of(name) for name in names}
    return {name: told for name, told in found.items() if told is not None}


def licence_of(name: str) -> str | None:
    """What a package says of its licence; ``None`` where it is not installed, as those for other systems are not."""
    try:
        told = metadata(name).json
    except PackageNotFoundError:
        return None
    classifiers = [each for each in told.get("classifier", ()) if each.startswith("License ::")]
    words = [told.get("license_expression", ""), *classifiers, told.get("license", "")]
    return " / ".join(str(each) for each in words if each)


def _vulnerabilities(*, offline: bool) -> int:
    command = [*_tool("pip_audit"), "--requirement", str(LOCK), "--require-hashes", "--disable-pip", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        told: list[dict[str, Any]] = from_json(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        told = []
    asked = [each for each in told if "vulns" in each]
    if not asked:
        _say("vulnerabilities: NOT CHECKED, the service cannot be reached; OFFLINE=1 allows that")
        return int(not offline)
    known = [f"{each['name']} {each['version']}: {fault['id']}" for each in asked for fault in each["vulns"]]
    _say("\n  ".join([f"vulnerabilities: {len(asked)} packages asked about, {len(known)} known", *known]))
    return int(bool(known))


def _list_of_parts() -> int:
    PARTS.parent.mkdir(exist_ok=True)
    command = [*_tool("cyclonedx_py"), "requirements", str(LOCK), "--output-format", "JSON", "-o", str(PARTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    _say(f"parts: {PARTS.relative_to(ROOT)} (CycloneDX)" if done.returncode == 0 else f"parts: FAILED\n{done.stderr}")
    return done.returncode


def _tool(module: str) -> list[str]:
    return [str(ROOT / ".venv-audit" / "bin" / "python"), "-m", module]


def _say(line: str) -> None:
    print(line)


if __name__ == "__main__":
    sys.exit(main())
