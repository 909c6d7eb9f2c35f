"""The service's figures in the text format of Prometheus (version 0.0.4)."""

from app.api.service import ServiceState
from app.version import VERSION

__all__ = ["metrics_text"]


def metrics_text(state: ServiceState) -> str:
    """Every figure of this process, with its meaning."""
    quotas = state.admission.quotas
    store = f'{{kind="{state.store.kind}"}}'
    figures = [
        ("info", "gauge", "Version and chat model", f'{{version="{VERSION}",chat_model="{state.model_label}"}}', 1),
        ("questions_in_flight", "gauge", "Questions that are being answered", "", state.admission.in_flight),
        ("questions_refused_total", "counter", "Questions refused as overloaded", "", state.admission.refused),
        ("approvals_total", "counter", "Answers that paused for approval at this process", "", state.approvals.kept),
        ("state_store_up", "gauge", "Whether the state store can be reached", store, int(state.store.available)),
        ("state_store_failures_total", "counter", "Operations that the store failed", store, state.store.failures),
        ("quotas_alone", "gauge", "Whether shared quotas are counted by this replica alone", "", int(quotas.alone)),
        ("quotas_refused_total", "counter", "Questions that a quota refused", "", quotas.refused.total()),
    ]
    return "".join(map(_figure, figures))


def _figure(figure: tuple[str, str, str, str, float]) -> str:
    name, kind, meaning, labels, value = figure
    name = f"toolchat_{name}"
    return f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n{name}{labels} {value}\n"
