"""A metrics API on loopback, behind the API server as an aggregated one."""

from __future__ import annotations

import json
import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
SERVICES = "/api/v1/namespaces/default/services"
GROUP = "v1beta1.metrics.k8s.io"


@contextmanager
def metrics_server(credentials, answer):
    """Serve on loopback; ``answer`` gives the items for a path, one call at a time. Gives the port."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            with lock:
                items = answer(self.path)
            body = json.dumps({"kind": "List", "resources": []} if items is None else {"items": items}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(credentials.certificate, credentials.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def announce(client, port):
    """Let the API server hand the group on to it."""
    service = {"metadata": {"name": "metrics"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    client.create(SERVICES, service)
    spec = {
        "group": "metrics.k8s.io", "version": "v1beta1", "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 100, "versionPriority": 100,
        "service": {"name": "metrics", "namespace": "default", "port": port},
    }  # fmt: skip
    client.create(API_SERVICES, {"metadata": {"name": GROUP}, "spec": spec})


def withdraw(client):
    """Let the group be nobody's again."""
    client.delete(f"{API_SERVICES}/{GROUP}")
    client.delete(f"{SERVICES}/metrics")
