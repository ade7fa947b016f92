"""Serve results to a browser on this computer, and to nobody else.

Only what was opened is ever sent: the page's own files, results, and the video files that they
name; :mod:`stepgraph.viewer.loopback` says to whom.
"""

from __future__ import annotations

import json
import mimetypes
import re
from collections.abc import Callable
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, unquote, urlsplit

from stepgraph.errors import StepgraphError, one_line
from stepgraph.export.results import (
    as_steps,
    load_result,
    read_results,
    result_files,
    save_corrections,
)
from stepgraph.problems import Problems
from stepgraph.viewer.loopback import POLICY as POLICY
from stepgraph.viewer.loopback import Answer, Guarded, Loopback
from stepgraph.viewer.pages import STATIC, details, playable, summary
from stepgraph.viewer.searching import Index

_BLOCK = 1 << 18
_LONGEST_BODY = 1 << 22
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


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


class Server(Loopback):
    """The server of one folder."""

    def __init__(self, shown: Shown, port: int = 0) -> None:
        self.shown = shown
        super().__init__(port, Handler)


class Handler(Guarded):
    """Answers one request for a file of the page, results, or a part of a video file."""

    server: Server

    def do_POST(self) -> None:
        """Keep a correction: what the page alone can send, as it says where it comes from."""
        self.close_connection = True  # what is refused is not read
        asked = urlsplit(self.path)
        length = self.headers.get("Content-Length", "")
        if not self.has_secret(asked.path):
            return self.refuse(HTTPStatus.NOT_FOUND)
        if not self.is_own() or self.headers.get("Origin") is None:
            return self.refuse(HTTPStatus.FORBIDDEN)
        is_json = self.headers.get("Content-Type") == "application/json"
        if not (is_json and length.isdecimal() and int(length) <= _LONGEST_BODY):
            return self.refuse(HTTPStatus.BAD_REQUEST)
        body = self.rfile.read(int(length))
        of = parse_qs(asked.query).get("of", [""])[0]
        if asked.path != f"/{self.server.secret}/correct":
            return self.refuse(HTTPStatus.NOT_FOUND)
        return self.send(self._found(lambda: self.server.shown.correct(of, json.loads(body))))

    def answer(self, name: str, query: str) -> None:
        """See :class:`~stepgraph.viewer.loopback.Guarded`."""
        if name.startswith("media/"):
            return self._send_media(unquote(name.removeprefix("media/")))
        if name in STATIC:
            return self.send_static(STATIC[name])
        return self.send(self._data(name, parse_qs(query).get("of", [""])[0]))

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
