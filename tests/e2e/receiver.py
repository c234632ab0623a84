"""A webhook receiver: it keeps what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(slots=True)
class Received:
    """Messages in the order in which they came."""

    url: str
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def names(self) -> list[str]:
        """``dead-drafter firing`` and so on, one for every alert in every message."""
        alerts = [alert for message in list(self.messages) for alert in message["alerts"]]
        return [f"{alert['labels']['alertname']} {alert['status']}" for alert in alerts]

    def alerts(self, name: str, status: str) -> list[dict[str, Any]]:
        """Every alert of that name and status over all messages; one sent twice is here twice."""
        alerts = [alert for message in list(self.messages) for alert in message["alerts"]]
        return [alert for alert in alerts if alert["labels"]["alertname"] == name and alert["status"] == status]


@contextmanager
def receiving() -> Generator[Received]:
    """Listen on a free port of the loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.messages.append(json.loads(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Requests are not printed between the checks."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        received = Received(f"http://127.0.0.1:{server.server_port}/")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield received
        finally:
            server.shutdown()
