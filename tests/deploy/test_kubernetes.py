"""The manifests are what Kubernetes takes, fit each other, and fit the service."""

import re
from typing import Any

import kubernetes_validate
import pytest

from scripts.env_example import variables
from scripts.prometheus_rule import RULE, rendered
from tests.application import create_app
from tests.deploy.manifests import DEPLOY, KUBERNETES, OF_OTHERS, OLDEST, ROOT, documents, named, read, the
from tests.documented_metrics import ROWS
from toolchat.service.settings.service_settings import Settings

ALL = list(documents(KUBERNETES))
OBJECTS = [each for each in ALL if each["kind"] not in OF_OTHERS]
DEPLOYMENTS = [each for each in ALL if each["kind"] == "Deployment"]
PODS = [each for each in ALL if each["kind"] in {"Deployment", "Job"}]
COMPONENTS = sorted(folder.name for folder in (KUBERNETES / "components").iterdir())
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def pod(deployment: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return spec


def container(deployment: dict[str, Any]) -> dict[str, Any]:
    (only,) = pod(deployment)["containers"]
    assert isinstance(only, dict)
    return only


def settings() -> dict[str, str]:
    """The variables that the base sets, none of them secret."""
    (generator,) = read(KUBERNETES / "base/kustomization.yaml")["configMapGenerator"]
    return dict(each.split("=", 1) for each in generator["literals"])


def test_the_base_names_a_provider_whose_key_is_in_the_example_of_the_secret() -> None:
    assert settings()["CHAT_PROVIDER"] == "dashscope"
    assert "DASHSCOPE_API_KEY" in secrets()


def secrets() -> dict[str, str]:
    """The variables of the example's Secret."""
    lines = (KUBERNETES / "example/secrets.env").read_text(encoding="utf-8").splitlines()
    return dict(each.split("=", 1) for each in lines if not each.startswith("#"))


@pytest.mark.parametrize("version", [OLDEST, kubernetes_validate.latest_version()])
@pytest.mark.parametrize("each", OBJECTS, ids=named)
def test_kubernetes_takes_every_object_and_knows_each_of_its_fields(each: dict[str, Any], version: str) -> None:
    assert version.startswith(kubernetes_validate.validate(each, version, strict=True))


@pytest.mark.parametrize("folder", ["base", "keda", "try", "example", *(f"components/{each}" for each in COMPONENTS)])
def test_a_folder_applies_every_file_that_lies_in_it(folder: str) -> None:
    kustomization = read(KUBERNETES / folder / "kustomization.yaml")
    applied = {each for each in kustomization.get("resources", []) if each != "../base"}
    of_helm = {"prometheus-adapter.yaml"}
    assert applied == {path.name for path in (KUBERNETES / folder).glob("*.yaml")} - {"kustomization.yaml"} - of_helm


def test_every_pod_selector_matches_existing_pods() -> None:
    labels = {named(each): each["spec"]["template"]["metadata"]["labels"] for each in DEPLOYMENTS}
    for each in ALL:
        if "labels" in each["metadata"] and each["kind"] in {"Deployment", "Service", "NetworkPolicy"}:
            spec = each["spec"]
            selector = spec.get("selector") or spec["podSelector"]
            selected = selector.get("matchLabels", selector)
            # The base labels its pods with part-of, and so does the check.
            name = each["metadata"]["name"].removesuffix("-model")
            pods = labels[f"Deployment-{name}"] | {"app.kubernetes.io/part-of": name}
            assert selected.items() <= pods.items(), named(each)
    for kind in ("PodDisruptionBudget", "PodMonitor"):
        assert the(kind)["spec"]["selector"]["matchLabels"] == labels["Deployment-toolchat"]
    for spread in pod(the("Deployment"))["topologySpreadConstraints"]:
        assert spread["labelSelector"]["matchLabels"] == labels["Deployment-toolchat"]


def test_every_port_that_is_named_is_one_of_the_container() -> None:
    for name in ("toolchat", "valkey"):
        ports = {each["name"] for each in container(the("Deployment", name))["ports"]}
        (rule,) = the("NetworkPolicy", name)["spec"]["ingress"]
        assert {each["port"] for each in rule["ports"]} == ports
        assert {each["targetPort"] for each in the("Service", name)["spec"]["ports"]} == ports
    assert {each["port"] for each in the("PodMonitor")["spec"]["podMetricsEndpoints"]} == {"http"}


def test_the_port_is_that_of_the_image_and_the_platform_may_choose_the_user() -> None:
    (port,) = container(the("Deployment"))["ports"]

    assert f"EXPOSE {port['containerPort']}\n" in DOCKERFILE
    assert not {"runAsUser", "runAsGroup", "fsGroup"} & set(pod(the("Deployment"))["securityContext"])


def test_the_probes_ask_routes_that_there_are_and_only_readiness_depends_on_draining() -> None:
    probes = {kind: container(the("Deployment"))[f"{kind}Probe"] for kind in ("startup", "readiness", "liveness")}
    paths = {kind: each["httpGet"]["path"] for kind, each in probes.items()}
    page = (ROOT / "docs/endpoints.md").read_text(encoding="utf-8")

    assert paths == {"startup": "/health/ready", "readiness": "/health/ready", "liveness": "/health/live"}
    assert set(paths.values()) <= set(create_app().openapi()["paths"])
    assert [path for path in paths.values() if f"`GET {path}`" not in page] == []


def test_every_variable_is_one_that_the_service_reads() -> None:
    env = {each["name"] for each in container(the("Deployment"))["env"]}
    generators = [
        each
        for folder in ("base", "try", "example", *(f"components/{each}" for each in COMPONENTS))
        for each in read(KUBERNETES / folder / "kustomization.yaml").get("configMapGenerator", [])
    ]
    named = {each.partition("=")[0] for generator in generators for each in generator["literals"]}

    assert env == {"REDIS_URL"}
    assert named >= {"CHAT_PROVIDER", "OPENAI_BASE_URL", "OTEL_EXPORTER_OTLP_ENDPOINT"}
    unknown = (env | set(secrets()) | named) - set(variables())
    assert [each for each in unknown if not each.startswith("OTEL_")] == []


def test_running_answers_may_end_before_a_pod_is_killed() -> None:
    drain = int(settings()["SHUTDOWN_TIMEOUT"])
    before = container(the("Deployment"))["lifecycle"]["preStop"]["sleep"]["seconds"]

    assert drain >= Settings.model_fields["request_timeout"].default
    assert pod(the("Deployment"))["terminationGracePeriodSeconds"] >= before + drain + 10


def test_every_secret_that_is_referred_to_is_in_the_example_which_holds_none() -> None:
    spec = container(the("Deployment"))
    (monitor,) = the("PodMonitor")["spec"]["podMetricsEndpoints"]
    reference, credentials = spec["env"][0]["valueFrom"]["secretKeyRef"], monitor["authorization"]["credentials"]
    (keys,) = [each["secret"]["secretName"] for each in pod(the("Deployment"))["volumes"] if "secret" in each]
    (mount,) = [each["mountPath"] for each in spec["volumeMounts"] if each["name"] == "keys"]
    example = {each["name"]: each for each in read(KUBERNETES / "example/kustomization.yaml")["secretGenerator"]}

    assert reference["key"] in secrets()
    assert example[reference["name"]]["envs"] == ["secrets.env"]
    assert example[credentials["name"]]["literals"] == [f"{credentials['key']}="]
    assert [each["secretRef"]["name"] for each in spec["envFrom"] if "secretRef" in each] == [reference["name"]]
    (file,) = example[keys]["files"]
    assert settings()["API_KEYS_FILE"] == f"{mount}/{file}"
    assert re.findall(r'sha256 = "(.*)"', (KUBERNETES / "example" / file).read_text()) == ["0" * 64]
    assert secrets() == {"REDIS_URL": "redis://valkey:6379/0", "DASHSCOPE_API_KEY": ""}


@pytest.mark.parametrize("deployment", PODS, ids=named)
def test_a_pod_has_no_right_that_it_does_not_need(deployment: dict[str, Any]) -> None:
    # What the profile `restricted` of the Pod Security Standards asks for, and a root that cannot be written.
    spec, context = pod(deployment), container(deployment)["securityContext"]

    assert context == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert (spec["automountServiceAccountToken"], spec["enableServiceLinks"]) == (False, False)
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    assert {"secret", "emptyDir"} >= {next(iter(each.keys() - {"name"})) for each in spec.get("volumes", [])}


@pytest.mark.parametrize("deployment", PODS, ids=named)
def test_memory_is_bounded_and_asked_for(deployment: dict[str, Any]) -> None:
    resources = container(deployment)["resources"]

    assert set(resources["requests"]) == {"cpu", "memory"}
    assert set(resources["limits"]) == {"memory"}


def test_a_rollout_removes_no_replica_before_another_is_ready() -> None:
    assert the("Deployment")["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert "replicas" not in the("Deployment")["spec"]  # each rollout would set back what the autoscaler chose
    assert the("PodDisruptionBudget")["spec"]["maxUnavailable"] < the("HorizontalPodAutoscaler")["spec"]["minReplicas"]


def test_both_autoscalers_use_the_same_metrics_and_targets() -> None:
    hpa, keda = the("HorizontalPodAutoscaler")["spec"], the("ScaledObject")["spec"]
    (metric, cpu), (trigger, keda_cpu) = hpa["metrics"], keda["triggers"]
    gauge = metric["pods"]["metric"]["name"]
    (rule,) = read(KUBERNETES / "components/monitoring/prometheus-adapter.yaml")["rules"]["custom"]

    assert [row.kind for row in ROWS if row.name == gauge] == ["gauge"]
    assert (trigger["metadata"]["query"], rule["seriesQuery"].partition("{")[0]) == (f"sum({gauge})", gauge)
    assert trigger["metadata"]["threshold"] == metric["pods"]["target"]["averageValue"]
    assert (keda_cpu["type"], keda_cpu["metricType"]) == (cpu["resource"]["name"], cpu["resource"]["target"]["type"])
    assert keda_cpu["metadata"]["value"] == cpu["resource"]["target"]["averageValue"]
    assert (keda["minReplicaCount"], keda["maxReplicaCount"]) == (hpa["minReplicas"], hpa["maxReplicas"])
    assert keda["advanced"]["horizontalPodAutoscalerConfig"]["behavior"] == hpa["behavior"]
    assert {keda["scaleTargetRef"]["name"], hpa["scaleTargetRef"]["name"]} == {the("Deployment")["metadata"]["name"]}


def test_only_one_of_the_autoscalers_is_applied() -> None:
    (patch,) = read(KUBERNETES / "keda/kustomization.yaml")["patches"]
    assert "kind: HorizontalPodAutoscaler\nmetadata: {name: toolchat}\n$patch: delete\n" in patch["patch"]


def test_the_egress_policy_has_the_ports_of_the_upstreams_of_redis_and_of_collectors() -> None:
    rules = the("NetworkPolicy")["spec"]["egress"]
    (valkey,) = the("Service", "valkey")["spec"]["ports"]
    (internet,) = [rule for rule in rules if {"protocol": "TCP", "port": 443} in rule["ports"]]

    assert {each["port"] for rule in rules for each in rule["ports"]} == {53, 443, valkey["port"], 6380, 4317, 4318}
    assert f":{valkey['port']}/" in secrets()["REDIS_URL"]
    assert [each["ipBlock"]["cidr"] for each in internet["to"]] == ["0.0.0.0/0", "::/0"]
    assert {"169.254.0.0/16", "10.0.0.0/8", "fc00::/7", "fe80::/10"} <= {
        network for each in internet["to"] for network in each["ipBlock"]["except"]
    }


def test_the_check_runs_as_the_service_and_receives_no_requests() -> None:
    check, service = the("Job", "toolchat-check"), the("Deployment")
    labels = check["spec"]["template"]["metadata"]["labels"]
    own, its = container(check), container(service)

    assert own["args"] == ["toolchat", "check"]
    assert not the("Service")["spec"]["selector"].items() <= labels.items()
    assert the("NetworkPolicy")["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    for field in ("image", "envFrom", "securityContext", "volumeMounts"):
        assert own[field] == its[field], field
    for field in ("securityContext", "volumes"):
        assert pod(check)[field] == pod(service)[field], field
    assert service["metadata"]["labels"]["app.kubernetes.io/component"] == "server"  # which the first step leaves out
    assert "component!=server" in (ROOT / "docs/scaling.md").read_text(encoding="utf-8")


def test_the_operator_gets_the_alerts_of_the_other_installations() -> None:
    assert RULE.read_text(encoding="utf-8") == rendered(), "run `make docs`"
    assert the("PrometheusRule")["spec"] == read(DEPLOY / "grafana/alerts.yaml")


def test_the_ingress_repeats_no_question_and_waits_longer_than_one_takes() -> None:
    ingress, service = the("Ingress"), the("Service")
    prefix = "nginx.ingress.kubernetes.io"
    (path,) = ingress["spec"]["rules"][0]["http"]["paths"]

    assert ingress["metadata"]["annotations"][f"{prefix}/proxy-next-upstream"] == "off"
    wait = int(ingress["metadata"]["annotations"][f"{prefix}/proxy-read-timeout"])
    assert wait > Settings.model_fields["request_timeout"].default
    assert path["backend"]["service"]["name"] == service["metadata"]["name"]
    assert path["backend"]["service"]["port"]["name"] in {each["name"] for each in service["spec"]["ports"]}


def test_valkey_runs_here_as_it_does_in_compose() -> None:
    here = container(the("Deployment", "valkey"))
    there = read(ROOT / "docker-compose.yml")["services"]["valkey"]

    assert (here["image"], here["args"]) == (there["image"], there["command"])
