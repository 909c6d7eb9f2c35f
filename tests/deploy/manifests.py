"""The files below ``deploy/``, read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

__all__ = ["DEPLOY", "KUBERNETES", "OF_OTHERS", "OLDEST", "ROOT", "documents", "named", "read", "the"]

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
OF_OTHERS = {"ScaledObject", "PodMonitor", "PrometheusRule"}
"""Kinds that a cluster has only with KEDA or the Prometheus operator, whose schemas are not Kubernetes' own."""
OLDEST = "1.30"
"""The first version that knows ``preStop.sleep``."""


class _Loader(yaml.CSafeLoader):
    """Knows the tag by which Compose takes away what a service has from the file that it extends."""


def _reset(loader: _Loader, node: yaml.SequenceNode) -> list[Any]:
    return loader.construct_sequence(node)


_Loader.add_constructor("!reset", _reset)


def read(path: Path) -> Any:
    """The one document of a file."""
    return yaml.load(path.read_text(encoding="utf-8"), _Loader)


def documents(folder: Path) -> Iterator[dict[str, Any]]:
    """Every object for Kubernetes in a folder and those below it."""
    for path in sorted(folder.rglob("*.yaml")):
        for each in yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader):
            if "kind" in each and each["kind"] not in {"Kustomization", "Component"}:
                yield each


def the(kind: str, name: str = "toolchat") -> dict[str, Any]:
    """The object of this kind and name."""
    (found,) = [each for each in documents(KUBERNETES) if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def named(each: dict[str, Any]) -> str:
    """Kind and name of an object."""
    return f"{each['kind']}-{each['metadata']['name']}"
