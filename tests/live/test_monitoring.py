"""The dashboard and the rules are made of the tables, and a real Prometheus takes them and answers every query."""

import json
import os
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from tests.history.postgres import free_port
from tests.simulator.helpers import gang, node, spec

from docs import make_monitoring
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.live.metrics import LiveMetrics
from tenure.live.queue_metrics import MOST, QueueMetrics
from tenure.live.tables import QUEUE_METRICS
from tenure.model.cluster import Cluster
from tenure.model.queue import Queue

PROMETHEUS = "<html><a href='x'>\n\"}"


def needs(program):
    if shutil.which(program) is None and os.environ.get("TENURE_PROMETHEUS") != "required":
        pytest.skip(f"no {program} here: run 'make prometheus' (Debian's package) to have this test run")
    return program


def test_the_files_are_what_the_tables_make():
    """If this fails, run: python docs/make_monitoring.py."""
    assert make_monitoring.DASHBOARD.read_text() == make_monitoring.dashboard()
    assert make_monitoring.RULES.read_text() == make_monitoring.rules()


def test_promtool_takes_the_rules():
    done = subprocess.run(
        [needs("promtool"), "check", "rules", make_monitoring.RULES], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(make_monitoring.ALERTS)} rules found" in done.stdout


def alerts_as_said(case, folder):
    """Let promtool hold the rules against a case."""
    file = folder / "case.yaml"
    file.write_text(case.format(rules=make_monitoring.RULES))
    done = subprocess.run([needs("promtool"), "test", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


STALLED = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {{series: 'tenure_leader{{job="tenure", instance="stands"}}', values: '1x30'}}
      - {{series: 'tenure_cycles_total{{job="tenure", instance="stands"}}', values: '0+2x5 10x25'}}
      - {{series: 'tenure_leader{{job="tenure", instance="goes"}}', values: '1x30'}}
      - {{series: 'tenure_cycles_total{{job="tenure", instance="goes"}}', values: '0+2x30'}}
      - {{series: 'tenure_leader{{job="tenure", instance="waits"}}', values: '0x30'}}
      - {{series: 'tenure_cycles_total{{job="tenure", instance="waits"}}', values: '0x30'}}
    alert_rule_test:
      - {{eval_time: 8m, alertname: TenureLoopStalled, exp_alerts: []}}
      - eval_time: 20m
        alertname: TenureLoopStalled
        exp_alerts:
          - exp_labels: {{severity: critical, job: tenure, instance: stands}}
            exp_annotations: {{summary: "A replica leads, but decides nothing."}}
"""


def test_a_leader_whose_loop_stands_still_is_told_of_by_name(tmp_path):
    """Neither the leader of another pool that goes on hides it, nor is a replica named that does not lead."""
    alerts_as_said(STALLED, tmp_path)


DROPPED = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {{series: 'tenure_history_dropped_records_total{{job="tenure", instance="drops"}}', values: '0x10 240x5 0x60'}}
      - {{series: 'tenure_history_dropped_records_total{{job="tenure", instance="writes"}}', values: '7x40 0x60'}}
    alert_rule_test:
      - {{eval_time: 10m, alertname: TenureHistoryLost, exp_alerts: []}}
      - eval_time: 20m
        alertname: TenureHistoryLost
        exp_alerts:
          - exp_labels: {{severity: warning, job: tenure, instance: drops}}
            exp_annotations: {{summary: "Records of the history were dropped; a gap record says from when to when."}}
      - {{eval_time: 90m, alertname: TenureHistoryLost, exp_alerts: []}}
"""


def test_dropped_records_are_told_of_and_a_restart_is_not(tmp_path):
    """A process that begins again counts from nothing: that is neither a loss nor does it hide one."""
    alerts_as_said(DROPPED, tmp_path)


def test_dropped_records_are_counted_since_the_process_began():
    metrics = LiveMetrics()
    for dropped in (0, 240, 240, 300):
        metrics.tell_of_history(5, dropped, away=True)
    assert values(metrics, "tenure_history_dropped_records_total") == {(): 300}
    assert b"# TYPE tenure_history_dropped_records_total counter" in metrics.text()[2]


def cycle_of(cluster):
    session = session_of(cluster)
    plan = Scheduler(session).cycle(cluster.now)
    outcome = SimpleNamespace(done=plan.steps, failures=[], skipped=[])
    return SimpleNamespace(
        plan=plan, observed=SimpleNamespace(cluster=cluster), session=session, outcome=outcome, seconds=0.01,
        deciding=0.005, processor=0.005, external=None,
    )  # fmt: skip


def crowded():
    """A queue over its share holds what another is owed."""
    running = [gang(f"r{i}", queue=PROMETHEUS, started_at=0, of=spec(cpu=4)) for i in range(2)]
    placed = []
    for number, workload in enumerate(running):
        task = workload.tasks[0]
        placed.append(replaced(workload, tasks=(replaced(task, node=f"n{number}", phase="Running"),)))
    owed = gang("owed", queue="b", of=spec(cpu=4), created_at=1)
    queues = (Queue(name=PROMETHEUS), Queue(name="b", guaranteed={"cpu": 4000}), Queue(name="c"))
    nodes = tuple(node(f"n{i}", cpu=4) for i in range(2))
    return Cluster(now=3_600_000_000, nodes=nodes, queues=queues, workloads=(*placed, owed))


def replaced(value, **fields):
    from dataclasses import replace  # noqa: PLC0415

    from tenure.model.workload import Phase  # noqa: PLC0415

    if "phase" in fields:
        fields["phase"] = Phase(fields["phase"])
    return replace(value, **fields)


def values(metrics, name):
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == name
    }


def test_what_was_lost_stands_under_the_queue_that_lost_it_and_was_caused_by_the_other():
    metrics = LiveMetrics([PROMETHEUS, "b"])
    metrics.count(cycle_of(crowded()))
    lost = values(metrics, "tenure_queue_lost_resource_seconds_total")
    caused = values(metrics, "tenure_queue_caused_resource_seconds_total")
    assert sum(lost.values()) == sum(caused.values()) > 0
    assert {dict(labels)["queue"] for labels in lost} == {PROMETHEUS}
    assert {dict(labels)["queue"] for labels in caused} == {"b"}
    assert {dict(labels)["cause"] for labels in lost} == {"reclaim"}
    cpu = next(value for labels, value in lost.items() if dict(labels)["resource"] == "cpu")
    assert cpu == 4 * 3600


def test_queues_that_nobody_named_are_one():
    metrics = LiveMetrics(["b"])
    metrics.count(cycle_of(crowded()))
    waiting = values(metrics, "tenure_queue_pending_workloads")
    assert {dict(labels)["queue"] for labels in waiting} == {"b", "other"}
    assert len(QueueMetrics(LiveMetrics().registry.__class__(), map(str, range(10_000))).names) == MOST


@pytest.fixture
def exporter():
    metrics = LiveMetrics([PROMETHEUS, "b"])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            metrics.count(cycle_of(crowded()))
            status, kind, body = metrics.text()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()


def test_a_real_prometheus_answers_every_query_of_the_dashboard(exporter, tmp_path):
    port = free_port()
    config = tmp_path / "prometheus.yml"
    config.write_text(
        f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{make_monitoring.RULES}]\n"
        f"scrape_configs: [{{job_name: t, static_configs: [{{targets: ['127.0.0.1:{exporter}']}}]}}]\n"
    )
    words = [
        f"--config.file={config}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    process = subprocess.Popen([needs("prometheus"), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(path, **query):
        url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    try:
        end = time.monotonic() + 60
        while True:
            assert process.poll() is None
            assert time.monotonic() < end
            try:
                if len(ask("query", query="count_over_time(tenure_cycles_total[1m]) > 3")["result"]):
                    break
            except OSError:
                pass
            time.sleep(0.2)
        panels = json.loads(make_monitoring.dashboard())["panels"]
        answers = {p["title"]: ask("query", query=p["targets"][0]["expr"])["result"] for p in panels}
        assert all(answers[metric.help.rstrip(".")] for metric in QUEUE_METRICS)
        assert sum(map(bool, answers.values())) > len(QUEUE_METRICS) + 10
        rules = ask("rules")["groups"][0]["rules"]
        assert sorted(rule["name"] for rule in rules) == sorted(alert[0] for alert in make_monitoring.ALERTS)
        assert [rule for rule in rules if rule["health"] == "err"] == []
        assert {rule["name"] for rule in rules if rule["state"] != "inactive"} >= {"TenureHasNoLeader"}
    finally:
        process.terminate()
        process.wait(20)
