"""Serve a browser on this computer, and nobody else.

The server listens on the loopback address alone.  Every address begins with a secret that only
the user who started it has, so no other program or page gets an answer.  Requests by another name
of this computer (DNS rebinding) or from another page are refused even with the secret.
"""

from __future__ import annotations

import secrets
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from stepgraph.errors import ConfigError
from stepgraph.viewer.pages import policy, static

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


class Response(NamedTuple):
    """Content, type and status of a response."""

    content: bytes
    kind: str = "application/json"
    status: HTTPStatus = HTTPStatus.OK


class Loopback(ThreadingHTTPServer):
    """Server for this computer; ``address`` is the URL to open."""

    daemon_threads = True

    def __init__(self, port: int, handler: type[Guarded], allowed: str | None = None) -> None:
        self.policy = allowed or policy()
        self.secret = secrets.token_urlsafe(24)
        try:
            super().__init__(("127.0.0.1", port), handler)
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"port must be free and at most 65535, got {port} ({error}); choose another"
            ) from error

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore browsers that disconnect during a response."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """URL of the page, with the secret."""
        return f"http://127.0.0.1:{self.server_port}/{self.secret}/"


class Guarded(BaseHTTPRequestHandler):
    """Request handler that checks secret, host and origin; subclasses implement ``answer``."""

    protocol_version = "HTTP/1.1"
    server: Loopback
    server_version = "stepgraph"
    sys_version = ""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, since requests are private."""

    def do_GET(self) -> None:
        """Answer a request with the right secret, host and origin."""
        url = urlsplit(self.path)
        if not self.has_secret(url.path):
            return self.refuse(HTTPStatus.NOT_FOUND)
        if not self.is_own():
            return self.refuse(HTTPStatus.FORBIDDEN)
        return self.answer(url.path.removeprefix("/").partition("/")[2], url.query)

    do_HEAD = do_GET

    def answer(self, name: str, query: str) -> None:
        """Send the resource ``name``, the part of the path after the secret."""
        raise NotImplementedError

    def has_secret(self, path: str) -> bool:
        """Check whether a path begins with the secret."""
        secret, _, _ = path.removeprefix("/").partition("/")
        return secrets.compare_digest(secret.encode(), self.server.secret.encode())

    def is_own(self) -> bool:
        """Check that host and origin of a request are those of the page."""
        own = f"127.0.0.1:{self.server.server_port}"
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site", "none")
        return (
            self.headers.get("Host") == own
            and origin in (None, f"http://{own}")
            and site in ("none", "same-origin")
        )

    def refuse(self, status: HTTPStatus) -> None:
        """Send a status as the response."""
        self.send(Response(f"{status.value} {status.phrase}\n".encode(), "text/plain", status))

    def send_static(self, name: str) -> None:
        """Send a file of the page."""
        kind = _TYPES[Path(name).suffix]
        self.send(Response(static(name).encode(), f"{kind}; charset=utf-8"))

    def send(self, answer: Response) -> None:
        """Send a response."""
        self.send_response(answer.status)
        self.head(answer.kind, len(answer.content))
        if self.command != "HEAD":
            self.wfile.write(answer.content)

    def head(self, kind: str, length: int | None) -> None:
        """Send the headers; a response without a length lasts until the connection closes."""
        headers = {
            "Content-Type": kind,
            **({} if length is None else {"Content-Length": str(length)}),
            "Content-Security-Policy": self.server.policy,
            "Cache-Control": "no-store",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
