"""Write the alerts as an object for the Prometheus operator; run by ``make docs``."""

from tests.deploy.manifests import DEPLOY

__all__ = ["RULE", "rendered"]

RULE = DEPLOY / "kubernetes/components/monitoring/prometheus-rule.yaml"
_HEAD = """# Written by `make docs` from deploy/grafana/alerts.yaml. Prometheus selects rules by its `ruleSelector`:
# the chart kube-prometheus-stack expects `release: NAME` in addition.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: toolchat
  labels: {app.kubernetes.io/name: toolchat}
spec:
"""


def rendered() -> str:
    """The text of the file."""
    rules = (DEPLOY / "grafana/alerts.yaml").read_text(encoding="utf-8")
    lines = rules[rules.index("groups:\n") :].splitlines(keepends=True)
    return _HEAD + "".join("  " + line if line.strip() else line for line in lines)


if __name__ == "__main__":
    RULE.write_text(rendered(), encoding="utf-8")
