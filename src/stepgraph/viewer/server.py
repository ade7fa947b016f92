"""Serve results to a browser on this computer, and to nobody else.

Only opened results are ever sent: the page's own files, results, and the video files that they
name; :mod:`stepgraph.viewer.loopback` decides which requests are answered.
"""

from __future__ import annotations

import json
import mimetypes
import os
import re
import threading
from collections.abc import Callable
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, unquote, urlsplit

import orjson

from stepgraph.core import Result
from stepgraph.errors import StepgraphError, one_line
from stepgraph.export.maps import MAPS, load_maps
from stepgraph.export.results import (
    as_steps,
    each_result,
    load_result,
    result_files,
    save_corrections,
)
from stepgraph.files.disk import parse_json
from stepgraph.graph.comparing import Norm
from stepgraph.problems import Problems
from stepgraph.viewer.loopback import Guarded, Loopback, Response
from stepgraph.viewer.maps import norms_of, picture
from stepgraph.viewer.pages import STATIC, details, overview_of, playable, policy, summary
from stepgraph.viewer.searching import Index
from stepgraph.viewer.thumbnails import thumbnail

_BLOCK = 1 << 18
_LONGEST_BODY = 1 << 22
_NO_PICTURE = b'<svg xmlns="http://www.w3.org/2000/svg"/>'
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_LENGTH = re.compile(r"\d{1,9}")


class Shown:
    """Folder of results; summaries are read once, details on request."""

    def __init__(
        self, folder: Path, problems: Problems | None = None, *, youtube: bool = False
    ) -> None:
        self.folder = folder
        self.youtube = youtube
        self.problems = problems
        self._places: dict[str, Path] = {}
        self._media: dict[str, Path] = {}
        self._lines: dict[str, dict[str, Any]] = {}
        self._changing = threading.Lock()
        files = result_files(folder)
        for path, result in zip(files, each_result(files, problems, brief=True), strict=True):
            if result is not None:
                self._places[result.video.id] = path
                self._note(result)
        self._mined = _maps_of(folder, problems)

    def _note(self, result: Result) -> None:
        self._lines[result.video.id] = summary(result, youtube=self.youtube)
        if path := playable(result):
            self._media[result.video.id] = path

    @cached_property
    def _norm(self) -> dict[str, Norm]:
        return norms_of(self._lines.values(), self._mined)

    @cached_property
    def overview(self) -> bytes:
        """All videos and tasks, as JSON."""
        unread = self.problems.summary() if self.problems else ""
        return orjson.dumps(overview_of(self._lines.values(), self._norm) | {"problems": unread})

    @cached_property
    def _index(self) -> Index:
        return Index(self.folder, Problems())

    def media(self, video: str) -> Path | None:
        """Return the video file that a result names; no other file is ever opened."""
        return self._media.get(video)

    def result(self, video: str) -> dict[str, Any] | None:
        """Return the details of a video, or None."""
        path = self._places.get(video)
        return None if path is None else details(load_result(path))

    def map(self, task: str) -> dict[str, Any] | None:
        """Return the procedure of a task, or None."""
        return picture(self._norm[task]) if task in self._norm else None

    def thumbnail(self, video: str, seconds: str) -> bytes | None:
        """Return a small picture of a video, or None."""
        path, line = self._media.get(video), self._lines.get(video)
        if path is None or line is None or not line["pictures"]:
            return None
        at = min(max(0.0, float(seconds)), line["duration"])
        return thumbnail(path, round(at, 1))

    def correct(self, video: str, content: Any) -> dict[str, Any] | None:
        """Store corrections of a video and return its new summary; content None deletes them."""
        path = self._places.get(video)
        if path is None:
            return None
        with self._changing:
            save_corrections(path, None if content is None else as_steps(content))
            self._note(load_result(path))
            for made in ("overview", "_norm", "_index"):  # computed again on the next request
                self.__dict__.pop(made, None)
            [now] = overview_of([self._lines[video]], self._norm)["videos"]
        return dict(now)

    def search(self, question: str) -> list[dict[str, Any]]:
        """Find sentences that match a question."""
        with self._changing:
            index = self._index
        return [one.__dict__ for one in index.search(question, 30)]


def _maps_of(folder: Path, problems: Problems | None) -> dict[str, Norm]:
    """Load the norms beside results; damaged ones are noted and left out."""
    try:
        return load_maps(folder)
    except StepgraphError as error:
        if problems is None:
            raise
        problems.add_error(error, "unreadable maps", str(folder / MAPS))
        return {}


class Server(Loopback):
    """Server of one folder."""

    def __init__(self, shown: Shown, port: int = 0) -> None:
        self.shown = shown
        super().__init__(port, Handler, policy(youtube=shown.youtube))


class Handler(Guarded):
    """Handler of one request for a file of the page, results, or a part of a video file."""

    server: Server

    def do_POST(self) -> None:
        """Store a correction, only from the page itself, as the Origin header shows."""
        self.close_connection = True  # the body of a refused request is not read
        url = urlsplit(self.path)
        length = self.headers.get("Content-Length", "")
        if not self.has_secret(url.path):
            return self.refuse(HTTPStatus.NOT_FOUND)
        if not self.is_own() or self.headers.get("Origin") is None:
            return self.refuse(HTTPStatus.FORBIDDEN)
        is_json = self.headers.get("Content-Type") == "application/json"
        if not (is_json and _LENGTH.fullmatch(length) and int(length) <= _LONGEST_BODY):
            return self.refuse(HTTPStatus.BAD_REQUEST)
        body = self.rfile.read(int(length))
        of = parse_qs(url.query).get("of", [""])[0]
        if url.path.rpartition("/")[2] != "correct":
            return self.refuse(HTTPStatus.NOT_FOUND)
        shown = self.server.shown
        return self.send(
            self._found(lambda: shown.correct(of, parse_json(body.decode(), "corrections")))
        )

    def answer(self, name: str, query: str) -> None:
        """See :class:`~stepgraph.viewer.loopback.Guarded`."""
        if name.startswith("media/"):
            return self._send_media(unquote(name.removeprefix("media/")))
        if name in STATIC:
            return self.send_static(STATIC[name])
        of = parse_qs(query).get("of", [""])[0]
        if name.startswith("picture/"):
            return self.send(self._picture(unquote(name.removeprefix("picture/")), of))
        return self.send(self._data(name, of))

    def _data(self, name: str, of: str) -> Response:
        shown = self.server.shown
        answers: dict[str, Callable[[], Any]] = {
            "overview": lambda: shown.overview,
            "result": lambda: shown.result(of),
            "map": lambda: shown.map(of),
            "search": lambda: shown.search(of),
        }
        if name not in answers:
            return Response(b"{}", status=HTTPStatus.NOT_FOUND)
        return self._found(answers[name])

    def _found(self, find: Callable[[], Any]) -> Response:
        try:
            found = find()
        except (StepgraphError, OSError, TypeError, ValueError) as error:
            content = json.dumps({"error": one_line(str(error))}).encode()
            return Response(content, status=HTTPStatus.BAD_REQUEST)
        if isinstance(found, bytes):
            return Response(found)
        status = HTTPStatus.NOT_FOUND if found is None else HTTPStatus.OK
        return Response(
            json.dumps(found, ensure_ascii=False).encode(errors="replace"), status=status
        )

    def _picture(self, video: str, seconds: str) -> Response:
        """Respond with a small picture of a video that results name, or an empty one."""
        try:
            content = self.server.shown.thumbnail(video, seconds)
        except ValueError:
            return Response(b"", "text/plain", HTTPStatus.BAD_REQUEST)
        if self.server.shown.media(video) is None:
            return Response(b"", "text/plain", HTTPStatus.NOT_FOUND)
        # A picture that cannot be decoded is no HTTP error, which the browser would report.
        return (
            Response(_NO_PICTURE, "image/svg+xml")
            if content is None
            else Response(content, "image/jpeg")
        )

    def _send_media(self, video: str) -> None:
        path = self.server.shown.media(video)
        if path is None or not os.path.isfile(path):
            return self.refuse(HTTPStatus.NOT_FOUND)
        with path.open("rb") as file:
            size = path.stat().st_size
            first, last = self._part(size)
            if first > last:
                return self.refuse(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
            part = self.headers.get("Range") is not None
            self.send_response(HTTPStatus.PARTIAL_CONTENT if part else HTTPStatus.OK)
            if part:
                self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
            self.send_header("Accept-Ranges", "bytes")
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            self.head(kind, last - first + 1)
            if self.command != "HEAD":
                self._copy(file, first, last)
        return None

    def _part(self, size: int) -> tuple[int, int]:
        """Return the first and the last byte of the requested range."""
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
