"""Compose's replicas, nginx, Prometheus and Grafana find each other, and are kept as close as the service alone."""

import re
from typing import Any

import pytest

from tests.deploy.manifests import DEPLOY, ROOT, read
from toolchat.service.settings.service_settings import Settings

COMPOSE = DEPLOY / "compose"
ALONE = read(ROOT / "docker-compose.yml")["services"]
SERVICES: dict[str, dict[str, Any]] = read(COMPOSE / "compose.yaml")["services"]
NGINX = (COMPOSE / "nginx.conf").read_text(encoding="utf-8")
PORT = ALONE["toolchat"]["environment"]["SERVER_PORT"]


def whole(name: str) -> dict[str, Any]:
    """A service with what it has from the file that it extends."""
    service = SERVICES[name]
    if "extends" not in service:
        return service
    assert (COMPOSE / service["extends"]["file"]).resolve() == ROOT / "docker-compose.yml"
    base: dict[str, Any] = ALONE[service["extends"]["service"]]
    return base | service | {"environment": base.get("environment", {}) | service.get("environment", {})}


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_kept_as_close_as_the_service_alone(name: str) -> None:
    service = whole(name)

    for rule in ("read_only", "cap_drop", "security_opt", "restart", "logging"):
        assert service[rule] == ALONE["toolchat"][rule], rule
    assert {"mem_limit", "memswap_limit", "pids_limit", "cpus"} <= set(service)
    assert not {"privileged", "cap_add", "network_mode", "pid", "ipc"} & set(service)
    assert [port for port in service.get("ports", []) if not port.startswith(("127.0.0.1:", "${SERVER_HOST"))] == []


def test_every_file_that_is_mounted_is_there_and_cannot_be_written() -> None:
    mounts = [each for service in SERVICES.values() for each in service.get("volumes", []) if each.startswith(".")]

    assert len(mounts) == 6
    for each in mounts:
        source, _, mode = each.split(":")
        assert (COMPOSE / source).is_file(), source
        assert mode == "ro"


def test_nginx_looks_for_the_replicas_by_their_name_and_is_new_enough_for_that() -> None:
    # `resolve` came to the free nginx with 1.27.3; without it nginx goes on asking replicas that have been replaced.
    (version,) = re.findall(r"^nginx:(\d+)\.(\d+)-", SERVICES["nginx"]["image"])

    assert tuple(map(int, version)) >= (1, 28)
    assert re.findall(r"server (\w+):(\d+) resolve", NGINX) == [("toolchat", PORT)]
    assert re.findall(r"listen (\d+);", NGINX) == [SERVICES["nginx"]["ports"][0].rsplit(":", 1)[1]]


def test_nginx_waits_longer_than_a_question_may_take() -> None:
    (seconds,) = re.findall(r"proxy_read_timeout (\d+)s;", NGINX)
    assert int(seconds) > Settings.model_fields["request_timeout"].default
    assert SERVICES["nginx"]["stop_grace_period"] == ALONE["toolchat"]["stop_grace_period"]
