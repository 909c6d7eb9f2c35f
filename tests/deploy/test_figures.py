"""The dashboard and the alerts ask for series that there are, by labels that they have."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
from prometheus_client import ProcessCollector

from tests.deploy.manifests import DEPLOY, ROOT, read
from tests.documented_metrics import ROWS
from tests.programs import require
from tests.waiting import PATIENCE

ALERTS = DEPLOY / "grafana/alerts.yaml"
TRIED = Path(__file__).with_name("alerts.yaml")
DASHBOARD = json.loads((DEPLOY / "grafana/dashboard.json").read_text(encoding="utf-8"))
RUNBOOK = (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
RULES: list[dict[str, Any]] = [rule for group in read(ALERTS)["groups"] for rule in group["rules"]]

OF_PROMETHEUS = {"job", "instance"}
"""Labels that every series gets where it is scraped."""


def series() -> dict[str, tuple[str, set[str]]]:
    """Every name that can be asked for, with its kind and its labels."""
    found = {"up": ("gauge", OF_PROMETHEUS)}
    for family in ProcessCollector(registry=None).collect():
        found[family.name + "_total" * (family.type == "counter")] = (family.type, OF_PROMETHEUS)
    for row in ROWS:
        labels = {*row.labels} | OF_PROMETHEUS
        if row.kind in ("histogram", "summary"):
            found |= {f"{row.name}_bucket": ("counter", labels | {"le"})} if row.kind == "histogram" else {}
            found |= {f"{row.name}_{part}": ("counter", labels) for part in ("sum", "count")}
        else:
            found[row.name] = (row.kind, labels)
    return found | {rule["record"]: ("gauge", {"job"}) for rule in RULES if "record" in rule}


SERIES = series()


def shown() -> Iterator[tuple[str, str]]:
    """Every expression of the dashboard with the text of its legend."""
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"], target["legendFormat"]
    for annotation in DASHBOARD["annotations"]["list"]:
        yield annotation["expr"], annotation["titleFormat"]


def ruled() -> Iterator[tuple[str, str]]:
    """Every expression of the rules with the texts that name labels of what it finds."""
    for rule in RULES:
        yield rule["expr"], " ".join(rule.get("annotations", {}).values()).replace("$labels.", "")


EXPRESSIONS = sorted({expression for expression, _ in (*shown(), *ruled())})


def parsed(expression: str) -> promql.Expr:
    """An expression as Grafana sends it."""
    return promql.parse(expression.replace("$__rate_interval", "1m").replace("$instance", ".*"))


def parts(expression: promql.Expr) -> list[Any]:
    """Every part of an expression."""
    found: list[Any] = []
    promql.walk(expression, found.append)
    return found


def selectors(expression: promql.Expr) -> list[promql.VectorSelector]:
    """What an expression asks for."""
    found = [each for each in parts(expression) if isinstance(each, promql.VectorSelector | promql.MatrixSelector)]
    return [each.vector_selector if isinstance(each, promql.MatrixSelector) else each for each in found]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_uses_existing_series_and_labels(expression: str) -> None:
    asked = selectors(parsed(expression))

    assert asked
    for each in asked:
        assert each.name in SERIES
        assert {matcher.name for matcher in each.matchers.matchers} <= SERIES[each.name][1]
    for part in parts(parsed(expression)):
        if isinstance(part, promql.AggregateExpr) and part.modifier:
            for each in selectors(part.expr):
                assert each.name is not None
                assert set(part.modifier.labels) <= SERIES[each.name][1]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_rates_are_computed_for_counters_and_for_counters_only(expression: str) -> None:
    rated = {
        each.name: part.func.name
        for part in parts(parsed(expression))
        if isinstance(part, promql.Call) and part.func.name in {"rate", "increase"}
        for each in selectors(part.args[-1])
    }
    counters = {each.name for each in selectors(parsed(expression)) if SERIES[each.name or ""][0] == "counter"}

    assert set(rated) == counters


@pytest.mark.parametrize(("expression", "text"), [*shown(), *ruled()])
def test_a_text_refers_to_labels_that_the_query_keeps(expression: str, text: str) -> None:
    named = {each for each in re.findall(r"{{ ?(\w+)[^}]*}}", text) if each not in {"value"}}
    outermost = next((part for part in parts(parsed(expression)) if isinstance(part, promql.AggregateExpr)), None)
    left = set(outermost.modifier.labels) if outermost and outermost.modifier else set()

    assert named <= left or (outermost is None and named <= OF_PROMETHEUS)


def test_only_errors_that_the_client_did_not_cause_burn_the_error_budget() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| 5\d\d \|", (ROOT / "docs/errors.md").read_text(encoding="utf-8"), flags=re.M)
    (failed,) = [rule["expr"] for rule in RULES if rule.get("record") == "job:toolchat_questions_failed:rate5m"]
    (codes,) = re.findall(r'outcome=~"([a-z|-]+)"', failed)

    assert set(codes.split("|")) == set(rows) - {"not-configured", "draining", "starting"}


def test_the_dashboard_and_the_alerts_use_every_series() -> None:
    asked = {each.name for expression, _ in (*shown(), *ruled()) for each in selectors(parsed(expression))}
    names = {re.sub(r"_(bucket|sum|count)$", "", each or "") for each in asked}

    assert {row.name for row in ROWS} - names == {
        "toolchat_quotas_alone",  # whether the store is within reach
        "toolchat_quotas_refused_total",  # requests by outcome
        "toolchat_breaker_openings_total",  # which breakers are open
        "toolchat_log_lines_lost_total",  # the log itself
        "toolchat_approvals_webhook_total",  # the log names each event that is given up
    }


def test_panels_have_ids_of_their_own_and_do_not_lie_over_each_other() -> None:
    panels = DASHBOARD["panels"]
    cells = [
        (x, y)
        for place in (each["gridPos"] for each in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert len({each["id"] for each in panels}) == len(panels)
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) == 23


@pytest.mark.parametrize("what", [["check", "rules", ALERTS], ["test", "rules", TRIED]])
def test_prometheus_itself_takes_the_rules_and_each_alert_comes_when_it_should(what: list[str | Path]) -> None:
    sparing = {"GOMAXPROCS": "1", "GOGC": "800"}  # or half of its time goes to garbage
    done = subprocess.run([require("promtool"), *what], env=sparing, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_alert_is_tried() -> None:
    tried = set(re.findall(r'alertname="(\w+)"', TRIED.read_text(encoding="utf-8")))
    assert tried == {rule["alert"] for rule in RULES if "alert" in rule}


def test_the_page_lists_every_alert_with_its_receiver() -> None:
    page = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(Toolchat\w+)` \| .* \| (\w+) \|$", page, flags=re.M)
    assert told == [(rule["alert"], rule["labels"]["severity"]) for rule in RULES if "alert" in rule]


@pytest.mark.parametrize("rule", [rule for rule in RULES if "alert" in rule], ids=lambda rule: rule["alert"])
def test_an_alert_links_its_section_of_the_runbook(rule: dict[str, Any]) -> None:
    section = RUNBOOK.partition(f"\n## {rule['alert']}\n")[2].partition("\n##")[0]

    assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{rule['alert'].lower()}"
    assert re.findall(r"^- \*\*(.*?):\*\*", section, flags=re.M) == ["Meaning", "Look at", "Do"]


def test_the_runbook_uses_existing_series() -> None:
    named = set(re.findall(r"\b(?:toolchat|process)_\w+", RUNBOOK))

    assert len(named) > 10
    assert named - SERIES.keys() == {"toolchat_tool_call_duration_seconds"}  # a histogram, whose series have suffixes
