"""Answer a browser on this computer, and nobody else.

It listens on the loopback address alone.  Every address begins with a secret that only who
started it knows, so no other program or page can ask for anything; requests by another name of
this computer (DNS rebinding) or from another page are refused even with it.
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


class Answer(NamedTuple):
    """What is sent back."""

    content: bytes
    kind: str = "application/json"
    status: HTTPStatus = HTTPStatus.OK


class Loopback(ThreadingHTTPServer):
    """A server of this computer; ``address`` is what to open."""

    daemon_threads = True

    def __init__(self, port: int, handler: type[Guarded], allowed: str | None = None) -> None:
        self.policy = allowed or policy()
        self.secret = secrets.token_urlsafe(24)
        try:
            super().__init__(("127.0.0.1", port), handler)
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"port must be a free one up to 65535, got {port} ({error}); name another, or none"
            ) from error

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that leaves in the middle of an answer is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.server_port}/{self.secret}/"


class Guarded(BaseHTTPRequestHandler):
    """Answers one request of those who know the secret; ``answer`` is what is particular."""

    protocol_version = "HTTP/1.1"
    server: Loopback
    server_version = "stepgraph"
    sys_version = ""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: what is asked for is nobody's business."""

    def do_GET(self) -> None:
        """Answer who may ask."""
        asked = urlsplit(self.path)
        if not self.has_secret(asked.path):
            return self.refuse(HTTPStatus.NOT_FOUND)
        if not self.is_own():
            return self.refuse(HTTPStatus.FORBIDDEN)
        return self.answer(asked.path.removeprefix("/").partition("/")[2], asked.query)

    do_HEAD = do_GET

    def answer(self, name: str, query: str) -> None:
        """Send what is asked for; ``name`` is what stands behind the secret."""
        raise NotImplementedError

    def has_secret(self, path: str) -> bool:
        """Whether an address begins with the secret."""
        secret, _, _ = path.removeprefix("/").partition("/")
        return secrets.compare_digest(secret.encode(), self.server.secret.encode())

    def is_own(self) -> bool:
        """Whether the page itself asks, by the name that it was opened with."""
        own = f"127.0.0.1:{self.server.server_port}"
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site", "none")
        return (
            self.headers.get("Host") == own
            and origin in (None, f"http://{own}")
            and site in ("none", "same-origin")
        )

    def refuse(self, status: HTTPStatus) -> None:
        """Say no, and why in a word."""
        self.send(Answer(f"{status.value} {status.phrase}\n".encode(), "text/plain", status))

    def send_static(self, name: str) -> None:
        """Send a file of the page."""
        kind = _TYPES[Path(name).suffix]
        self.send(Answer(static(name).encode(), f"{kind}; charset=utf-8"))

    def send(self, answer: Answer) -> None:
        """Send an answer."""
        self.send_response(answer.status)
        self.head(answer.kind, len(answer.content))
        if self.command != "HEAD":
            self.wfile.write(answer.content)

    def head(self, kind: str, length: int | None) -> None:
        """End the head of an answer; one without a length goes on until it is closed."""
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
