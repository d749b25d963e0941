"""Writes the Grafana dashboard and the Prometheus rules from the tables of the metrics. Run: python this file.

A test holds that the files are what this makes, and that a real Prometheus takes them and answers every query.
"""
# ruff: noqa: INP001  a script, not a package

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tenure.live.tables import METRICS, QUEUE_METRICS
from tenure.telemetry.tables import METRICS as OF_PLANS

FOLDER: Final = Path(__file__).parent / "monitoring"
DASHBOARD: Final = FOLDER / "grafana-dashboard.json"
RULES: Final = FOLDER / "prometheus-rules.yaml"

HISTOGRAMS: Final = ("tenure_cycle_seconds", "tenure_decision_seconds")
LABELS: Final = {
    "tenure_writes_total": "action, result", "tenure_evictions_total": "cause", "tenure_faults_total": "stage",
}  # fmt: skip
"""Labels of counters, by which a dashboard shows them."""

ALERTS: Final = (
    ("TenureHasNoLeader", "max(tenure_leader) < 1", "2m", "critical", "No replica leads: nothing is scheduled."),
    ("TenureLoopStalled",
     ("sum by (job, instance) (rate(tenure_cycles_total[5m])) == 0 "
      "and on (job, instance) max by (job, instance) (tenure_leader) == 1"),
     "5m", "critical", "A replica leads, but decides nothing."),
    ("TenureEvictionSurge",
     ("sum(rate(tenure_evictions_total[10m])) > 4 * sum(rate(tenure_evictions_total[1d] offset 10m)) "
      "and sum(increase(tenure_evictions_total[10m])) > 20"),
     "10m", "warning", "There are four times as many evictions as over the last day."),
    ("TenureQuotaStuck", 'sum(tenure_quota_queues{state="stuck"}) > 0', "30m", "warning",
     "A queue uses more than its max and cannot be brought under it."),
    ("TenureUnknownStarts", "max(tenure_unknown_starts) > 0", "10m", "warning",
     "Workloads run with an unknown start: no minimum runtime protects them."),
    ("TenureWritesRefused",
     'sum(rate(tenure_writes_total{result="refused"}[10m])) > 0.1 * sum(rate(tenure_writes_total[10m]))', "10m",
     "warning", "The API server refuses more than a tenth of all writes."),
    ("TenureHistoryAway", "max(tenure_history_away) > 0", "15m", "warning", "The store of the history is unavailable."),
    ("TenureHistoryLost", "increase(tenure_history_dropped_records_total[1h]) > 0", "0m", "warning",
     "Records of the history were dropped; a gap record says from when to when."),
)  # fmt: skip


def queries() -> list[tuple[str, str, str]]:
    """Give a title, a query and a unit for each metric of the tables."""
    found = []
    for metric in QUEUE_METRICS:
        by = ", ".join(metric.labels)
        query = (
            f"sum by ({by}) ({metric.name})" if metric.kind == "gauge" else f"sum by ({by}) (rate({metric.name}[5m]))"
        )
        found.append((metric.help, query, "short"))
    for plan in OF_PLANS:
        by = ", ".join(name for name, _ in plan.labels)
        inner = plan.name if plan.kind == "gauge" else f"rate({plan.name}[5m])"
        found.append((plan.help, f"sum by ({by}) ({inner})" if by else f"sum({inner})", "short"))
    for name, text in METRICS.items():
        if name in HISTOGRAMS:
            found.append((f"{text} 99%.", f"histogram_quantile(0.99, sum by (le) (rate({name}_bucket[5m])))", "s"))
        elif name.endswith("_total"):
            by = f" by ({LABELS[name]}) " if name in LABELS else ""
            found.append((text, f"sum{by}(rate({name}[5m]))", "short"))
        else:
            found.append((text, f"max({name})", "short"))
    return found


def dashboard() -> str:
    """Give the dashboard."""
    panels = [_panel(number, *query) for number, query in enumerate(queries())]
    whole = {
        "title": "Tenure", "uid": "tenure", "tags": ["tenure"], "schemaVersion": 39, "version": 1, "editable": True,
        "time": {"from": "now-6h", "to": "now"}, "refresh": "30s", "timezone": "utc",
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Source"}]
        },
        "panels": panels,
    }  # fmt: skip
    return json.dumps(whole, indent=1) + "\n"


def _panel(number: int, title: str, query: str, unit: str) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {
        "id": number + 1, "type": "timeseries", "title": title.rstrip("."), "datasource": source,
        "gridPos": {"x": number % 2 * 12, "y": number // 2 * 8, "w": 12, "h": 8},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [{"refId": "A", "expr": query, "datasource": source}],
    }  # fmt: skip


def rules() -> str:
    """Give the alert rules."""
    lines = ["# Made by docs/make_monitoring.py; change that and run it.", "groups:", "  - name: tenure", "    rules:"]
    for name, query, span, severity, text in ALERTS:
        lines += [
            f"      - alert: {name}", f"        expr: {json.dumps(query)}", f"        for: {span}",
            f"        labels: {{severity: {severity}}}", "        annotations:",
            f"          summary: {json.dumps(text)}",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write both files."""
    FOLDER.mkdir(exist_ok=True)
    DASHBOARD.write_text(dashboard(), encoding="utf-8")
    RULES.write_text(rules(), encoding="utf-8")


if __name__ == "__main__":
    main()
