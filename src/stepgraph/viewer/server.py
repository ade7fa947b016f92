"""Serve results to a browser on this computer, and to nobody else.

It listens on the loopback address alone.  Every address begins with a secret that only who
started it knows, so no other program or page can ask for anything; requests by another name of
this computer (DNS rebinding) or from another page are refused even with it.  Only what was
opened is ever sent: the page's own files, results, and the video files that they name.
"""

from __future__ import annotations

import json
import mimetypes
import re
import secrets
import sys
from collections.abc import Callable
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from stepgraph.errors import StepgraphError, one_line
from stepgraph.export.results import (
    as_steps,
    load_result,
    read_results,
    result_files,
    save_corrections,
)
from stepgraph.files.disk import parse_json
from stepgraph.problems import Problems
from stepgraph.viewer.pages import STATIC, details, playable, static, summary
from stepgraph.viewer.searching import Index

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' "
    "data:; media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_BLOCK = 1 << 18
_LONGEST_BODY = 1 << 22
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_LENGTH = re.compile(r"\d{1,9}")


class Shown:
    """A folder of results, read once; what is asked for later is read then."""

    def __init__(self, folder: Path, problems: Problems | None = None) -> None:
        self.folder = folder
        found = list(read_results(folder, problems))
        self._media = {one.video.id: path for one in found if (path := playable(one))}
        self.overview = [summary(one) | {"plays": one.video.id in self._media} for one in found]

    @cached_property
    def _places(self) -> dict[str, Path]:
        return {
            path.relative_to(self.folder).as_posix().removesuffix(".steps.json"): path
            for path in result_files(self.folder)
        }

    @cached_property
    def _index(self) -> Index:
        return Index(self.folder, Problems())

    def media(self, video: str) -> Path | None:
        """The file of a video that results name; no other is ever opened."""
        return self._media.get(video)

    def result(self, video: str) -> dict[str, Any] | None:
        """All that is known of a video."""
        path = self._places.get(video)
        return None if path is None else details(load_result(path))

    def correct(self, video: str, content: Any) -> dict[str, Any] | None:
        """Keep what a person says is done in a video, and say how it is now; None: as it was."""
        path = self._places.get(video)
        if path is None:
            return None
        save_corrections(path, None if content is None else as_steps(content))
        now = summary(load_result(path)) | {"plays": video in self._media}
        self.overview = [now if one["id"] == video else one for one in self.overview]
        self.__dict__.pop("_index", None)  # it is brought up to date when it is asked again
        return now

    def search(self, question: str) -> list[dict[str, Any]]:
        """Moments that answer a question."""
        return [one.__dict__ for one in self._index.search(question, 30)]


class Answer(NamedTuple):
    """What is sent back."""

    content: bytes
    kind: str = "application/json"
    status: HTTPStatus = HTTPStatus.OK


class Server(ThreadingHTTPServer):
    """The server of one folder; ``address`` is what to open."""

    daemon_threads = True

    def __init__(self, shown: Shown, port: int = 0) -> None:
        self.shown = shown
        self.secret = secrets.token_urlsafe(24)
        super().__init__(("127.0.0.1", port), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that leaves in the middle of an answer is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.server_port}/{self.secret}/"


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"
    server: Server
    server_version = "stepgraph"
    sys_version = ""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: what is asked for is nobody's business."""

    def do_GET(self) -> None:
        """Send a file of the page, results, or a part of a video file."""
        self._answer()

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Keep a correction: what the page alone can send, as it says where it comes from."""
        self.close_connection = True  # what is refused is not read
        asked = urlsplit(self.path)
        length = self.headers.get("Content-Length", "")
        if not self._has_secret(asked.path):
            return self._refuse(HTTPStatus.NOT_FOUND)
        if not self._is_own() or self.headers.get("Origin") is None:
            return self._refuse(HTTPStatus.FORBIDDEN)
        is_json = self.headers.get("Content-Type") == "application/json"
        if not (is_json and _LENGTH.fullmatch(length) and int(length) <= _LONGEST_BODY):
            return self._refuse(HTTPStatus.BAD_REQUEST)
        body = self.rfile.read(int(length))
        of = parse_qs(asked.query).get("of", [""])[0]
        if asked.path != f"/{self.server.secret}/correct":
            return self._refuse(HTTPStatus.NOT_FOUND)
        shown = self.server.shown
        return self._send(
            self._found(lambda: shown.correct(of, parse_json(body.decode(), "corrections")))
        )

    def _has_secret(self, path: str) -> bool:
        secret, _, _ = path.removeprefix("/").partition("/")
        return secrets.compare_digest(secret.encode(), self.server.secret.encode())

    def _answer(self) -> None:
        asked = urlsplit(self.path)
        name = asked.path.removeprefix("/").partition("/")[2]
        if not self._has_secret(asked.path):
            return self._refuse(HTTPStatus.NOT_FOUND)
        if not self._is_own():
            return self._refuse(HTTPStatus.FORBIDDEN)
        if name.startswith("media/"):
            return self._send_media(unquote(name.removeprefix("media/")))
        if name in STATIC:
            kind = _TYPES[Path(STATIC[name]).suffix]
            return self._send(Answer(static(STATIC[name]).encode(), f"{kind}; charset=utf-8"))
        query = parse_qs(asked.query)
        return self._send(self._data(name, query.get("of", [""])[0]))

    def _is_own(self) -> bool:
        """Whether the page itself asks, by the name that it was opened with."""
        own = f"127.0.0.1:{self.server.server_port}"
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site", "none")
        return (
            self.headers.get("Host") == own
            and origin in (None, f"http://{own}")
            and site in ("none", "same-origin")
        )

    def _data(self, name: str, of: str) -> Answer:
        shown = self.server.shown
        known: dict[str, Callable[[], Any]] = {
            "overview": lambda: shown.overview,
            "result": lambda: shown.result(of),
            "search": lambda: shown.search(of),
        }
        if name not in known:
            return Answer(b"{}", status=HTTPStatus.NOT_FOUND)
        return self._found(known[name])

    def _found(self, find: Callable[[], Any]) -> Answer:
        try:
            found = find()
        except (StepgraphError, OSError, TypeError, ValueError) as error:
            content = json.dumps({"error": one_line(str(error))}).encode()
            return Answer(content, status=HTTPStatus.BAD_REQUEST)
        status = HTTPStatus.NOT_FOUND if found is None else HTTPStatus.OK
        return Answer(
            json.dumps(found, ensure_ascii=False).encode(errors="replace"), status=status
        )

    def _send_media(self, video: str) -> None:
        path = self.server.shown.media(video)
        if path is None or not path.is_file():
            return self._refuse(HTTPStatus.NOT_FOUND)
        with path.open("rb") as file:
            size = path.stat().st_size
            first, last = self._part(size)
            if first > last:
                return self._refuse(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
            part = self.headers.get("Range") is not None
            self.send_response(HTTPStatus.PARTIAL_CONTENT if part else HTTPStatus.OK)
            if part:
                self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
            self.send_header("Accept-Ranges", "bytes")
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            self._head(kind, last - first + 1)
            if self.command != "HEAD":
                self._copy(file, first, last)
        return None

    def _part(self, size: int) -> tuple[int, int]:
        """The first and the last byte that are asked for."""
        found = _RANGE.fullmatch(self.headers.get("Range", ""))
        if found is None or found.groups() == ("", ""):
            return 0, size - 1
        first, last = found.groups()
        if not first:
            return max(0, size - int(last)), size - 1
        return int(first), min(size - 1, int(last or size))

    def _copy(self, file: BinaryIO, first: int, last: int) -> None:
        file.seek(first)
        left = last - first + 1
        while left > 0 and (block := file.read(min(_BLOCK, left))):
            self.wfile.write(block)
            left -= len(block)

    def _refuse(self, status: HTTPStatus) -> None:
        self._send(Answer(f"{status.value} {status.phrase}\n".encode(), "text/plain", status))

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self._head(answer.kind, len(answer.content))
        if self.command != "HEAD":
            self.wfile.write(answer.content)

    def _head(self, kind: str, length: int) -> None:
        headers = {
            "Content-Type": kind,
            "Content-Length": str(length),
            "Content-Security-Policy": POLICY,
            "Cache-Control": "no-store",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
