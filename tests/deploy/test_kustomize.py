"""What kubectl builds of the folders; tests of the files hold them where it is not installed."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.deploy.manifests import KUBERNETES, OF_OTHERS, OLDEST, named
from tests.programs import require
from tests.waiting import PATIENCE


def built(folder: Path) -> list[dict[str, Any]]:
    command = [require("kubectl"), "kustomize", str(folder)]  # it contains kustomize
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return list(yaml.load_all(done.stdout, yaml.CSafeLoader))


def templates(folder: Path) -> dict[str, Any]:
    return {named(each): each["spec"]["template"] for each in built(folder) if "template" in each.get("spec", {})}


@pytest.mark.parametrize("folder", ["base", "keda", "try", "example", "with_model"])
def test_kustomize_builds_objects_that_kubernetes_takes(folder: str, tmp_path: Path) -> None:
    here = tmp_path / "kubernetes"
    shutil.copytree(KUBERNETES, here)
    shutil.copytree(here / "example", here / "with_model")
    file = here / "with_model/kustomization.yaml"
    file.write_text(file.read_text().replace("# - ../components/model", "- ../components/model"))
    objects = built(here / folder)

    for each in objects:
        if each["kind"] not in OF_OTHERS:
            kubernetes_validate.validate(each, OLDEST, strict=True)
    (config,) = [each["data"] for each in objects if each["kind"] == "ConfigMap"]
    assert ("OPENAI_BASE_URL" in config) == (folder == "with_model")
    assert ("OTEL_EXPORTER_OTLP_ENDPOINT" in config) == (folder in {"example", "with_model"})
    (policy, *_) = [each for each in objects if named(each) == "NetworkPolicy-toolchat"]
    (service,) = [each for each in objects if named(each) == "Deployment-toolchat"]
    labels = service["spec"]["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()


def test_a_changed_secret_rolls_out_and_is_checked(tmp_path: Path) -> None:
    shutil.copytree(KUBERNETES, tmp_path / "kubernetes")
    example = tmp_path / "kubernetes" / "example"
    before = templates(example)
    assert sorted(before) == ["Deployment-toolchat", "Job-toolchat-check"]
    for file, old, new in (("secrets.env", "KEY=", "KEY=other"), ("keys.toml", "nobody", "somebody")):
        secret = example / file
        secret.write_text(secret.read_text().replace(old, new))
        after = templates(example)
        assert [name for name in before if before[name] == after[name]] == []
        before = after
