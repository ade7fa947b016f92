"""Show live recognition in a browser: states as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from threading import Condition
from typing import Any

from stepgraph.viewer.loopback import Guarded, Loopback
from stepgraph.viewer.pages import COLORS

_PAGE = {"": "live.html"} | {name: name for name in ("live.js", "view.css", COLORS)}
# Seconds after which a comment is sent, so that a closed connection is noticed.
_SILENCE = 15.0


class Stage:
    """The current state, with notification of all connections on each change."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._number, self._state, self._over = 0, "", False

    def show(self, state: Mapping[str, Any]) -> None:
        """Publish a new state to all connections."""
        with self._changed:
            self._number, self._state = self._number + 1, json.dumps(state, ensure_ascii=False)
            self._changed.notify_all()

    def finish(self) -> None:
        """Mark the last state as final for all connections."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def wait(self, seen: int, seconds: float) -> tuple[int, str, bool]:
        """Wait for a change; return the newest state's number, the state, and if it is final."""
        with self._changed:
            self._changed.wait_for(lambda: self._number != seen or self._over, seconds)
            return self._number, self._state, self._over


class LiveServer(Loopback):
    """Server of one stage."""

    def __init__(self, stage: Stage, port: int = 0) -> None:
        self.stage = stage
        super().__init__(port, LiveHandler)


class LiveHandler(Guarded):
    """Handler of one request for the page, or for all states from now on."""

    server: LiveServer

    def answer(self, name: str, query: str) -> None:
        """See :class:`~stepgraph.viewer.loopback.Guarded`."""
        if name in _PAGE:
            return self.send_static(_PAGE[name])
        if name != "events":
            return self.refuse(HTTPStatus.NOT_FOUND)
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        self.head("text/event-stream; charset=utf-8", None)
        return None if self.command == "HEAD" else self._stream()

    def _stream(self) -> None:
        seen, over = 0, False
        while not over:
            number, state, over = self.server.stage.wait(seen, _SILENCE)
            # In JSON no line ends, so a state is one line.
            event = f"data: {state}\n\n" if number != seen else ": still here\n\n"
            self.wfile.write(event.encode(errors="replace"))
            self.wfile.flush()
            seen = number
        self.wfile.write(b"event: end\ndata: {}\n\n")
