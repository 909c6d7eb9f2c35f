"""The service's figures in the text format of Prometheus (version 0.0.4), or in OpenMetrics."""

import platform

from app.api.service import ServiceState
from app.http import OutboundHttp
from app.logs import lost_lines
from app.observation import catalogue as series
from app.observation.notes import count_told
from app.observation.runtime import process_readings
from app.observation.series import Family, Readings, exposition
from app.version import VERSION

__all__ = ["figures", "metrics_text"]

_PYTHON = platform.python_version()


async def figures(state: ServiceState, *, open_metrics: bool = False) -> str:
    """The figures of this process."""
    return metrics_text(state, await state.container.get(OutboundHttp), open_metrics=open_metrics)


def metrics_text(state: ServiceState, http: OutboundHttp, *, open_metrics: bool = False) -> str:
    """Every figure of this process, with its meaning; what is kept elsewhere is read now."""
    quotas, store = state.admission.quotas, state.store
    readings: dict[Family, Readings] = {
        series.INFO: {(VERSION, state.model_label, _PYTHON): 1},
        series.IN_FLIGHT: {(): state.admission.in_flight},
        series.REFUSED: {(): state.admission.refused},
        series.QUOTAS_ALONE: {(): int(quotas.alone)},
        series.QUOTAS_REFUSED: {(): quotas.refused.total()},
        series.CONNECTIONS: {(): http.connections},
        series.LOG_LOST: {(): lost_lines()},
        series.SESSIONS: {(): state.memory.active},
        series.APPROVALS: {(): state.approvals.kept},
        series.STORE_UP: {(store.kind,): int(store.available)},
        series.STORE_FAILURES: {(store.kind,): store.failures},
    }
    count_told()
    return exposition(series.FAMILIES, readings | process_readings(), open_metrics=open_metrics)
