"""Kueue in tests: its kinds, and where it was built its controllers, beside a real API server."""

from __future__ import annotations

import base64
import subprocess
from contextlib import contextmanager

import yaml
from tests.history.postgres import free_port
from tests.kubernetes.stage import wait_until
from tools.controlplane import build

WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2"
SYSTEM = "kueue-system"
SECRET = f"/api/v1/namespaces/{SYSTEM}/secrets/kueue-webhook-server-cert"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CONVERTED = ("localqueues", "clusterqueues", "workloads", "cohorts", "multikueueclusters")
"""Kinds whose definitions get the certificate of Kueue's conversion."""


def workloads_definition():
    """Give a definition of Kueue's workloads, of which the conditions alone have a schema, like that of Kueue."""
    condition = {"type": "object", "required": ["type", "status", "lastTransitionTime", "reason", "message"],
                 "properties": {name: {"type": "string"} for name in ("type", "status", "reason", "message")}
                 | {"lastTransitionTime": {"type": "string", "format": "date-time"}}}  # fmt: skip
    conditions = {"type": "array", "items": condition, "x-kubernetes-list-type": "map",
                  "x-kubernetes-list-map-keys": ["type"]}  # fmt: skip
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": {
        **anything, "properties": {"conditions": conditions},
    }}}  # fmt: skip
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "workloads.kueue.x-k8s.io",
                     "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"}},
        "spec": {
            "group": "kueue.x-k8s.io", "scope": "Namespaced",
            "names": {"kind": "Workload", "plural": "workloads"},
            "versions": [{"name": "v1beta2", "served": True, "storage": True, "subresources": {"status": {}},
                          "schema": {"openAPIV3Schema": schema}}],
        },
    }  # fmt: skip


def definitions():
    """Give the definitions of all of Kueue's kinds, as it was built with."""
    for path in sorted((build.KUEUE.folder / "crds").glob("*.yaml")):
        one = yaml.safe_load(path.read_text())
        one["metadata"].setdefault("annotations", {})["api-approved.kubernetes.io"] = "unapproved, for tests"
        if one["spec"]["names"]["plural"] in CONVERTED:  # never asked: all that is here has one version
            one["spec"]["conversion"] = {
                "strategy": "Webhook",
                "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"}},
            }
        yield one


@contextmanager
def kueue(plane, folder):
    """Run Kueue's controllers, without its webhooks. Gives the file of what they log."""
    client = plane.client()
    plane.add_namespace(SYSTEM)
    client.create(SECRET.rpartition("/")[0], {"metadata": {"name": SECRET.rpartition("/")[2]}})
    for kind in ("Validating", "Mutating"):
        name = f"kueue-{kind.lower()}-webhook-configuration"
        path = f"{ADMISSION}/{kind.lower()}webhookconfigurations"
        client.create(path, {"apiVersion": ADMISSION.removeprefix("/apis/"), "kind": f"{kind}WebhookConfiguration",
                             "metadata": {"name": name}, "webhooks": []})  # fmt: skip
    certificates = folder / "certificates"
    certificates.mkdir()
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "namespace": SYSTEM,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"},
        "metrics": {"bindAddress": f"127.0.0.1:{free_port()}"},
        "webhook": {"host": "127.0.0.1", "port": free_port(), "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": True},
        "integrations": {"frameworks": ["batch/job"]},
        "featureGates": {"VisibilityOnDemand": False},
    }  # fmt: skip
    file, log = folder / "kueue.yaml", folder / "kueue.log"
    file.write_text(yaml.safe_dump(config))
    program = build.KUEUE.folder / "kueue"
    with log.open("w") as out:
        running = subprocess.Popen([program, f"--config={file}", f"--kubeconfig={plane.kubeconfig}"],
                                   stdout=out, stderr=out)  # fmt: skip
    try:
        wait_until(lambda: client.get(SECRET).get("data", {}).get("tls.crt"), lambda: log.read_text()[-3000:], 60)
        for name, value in client.get(SECRET)["data"].items():  # what a kubelet mounts
            (certificates / name).write_bytes(base64.b64decode(value))
        wait_until(lambda: "Starting workers" in log.read_text(), lambda: log.read_text()[-3000:], 60)
        yield log
    finally:
        running.terminate()
        running.wait(20)
