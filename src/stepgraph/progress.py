"""Progress of long work: bars on a terminal, and single lines on stderr.

Library code reports with :func:`track` and never draws.  Nothing is shown until the command line
turns it on with :func:`shown`; bars appear only on a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from stepgraph.errors import printable

if TYPE_CHECKING:
    from rich.progress import Progress

_Item = TypeVar("_Item")
_drawing: ContextVar[Progress | None] = ContextVar("_drawing", default=None)
_noting: ContextVar[bool] = ContextVar("_noting", default=False)


@contextmanager
def shown() -> Iterator[None]:
    """Draw progress bars on stderr inside this block, if stderr is a terminal."""
    noting = _noting.set(True)
    try:
        if not sys.stderr.isatty():
            yield
            return
        with _bars() as bars:
            token = _drawing.set(bars)
            try:
                yield
            finally:
                _drawing.reset(token)
    finally:
        _noting.reset(noting)


@contextmanager
def hidden() -> Iterator[None]:
    """Draw no bars inside this block, which prints output of its own."""
    bars, token = _drawing.get(), _drawing.set(None)
    if bars is not None:
        bars.stop()  # it would take what is printed for its own
    try:
        yield
    finally:
        _drawing.reset(token)
        if bars is not None:
            bars.start()


def note(text: str) -> None:
    """Write one line on stderr before long work, inside :func:`shown` and terminal or not."""
    bars = _drawing.get()
    if bars is not None:
        bars.console.print(f"stepgraph: {printable(text)}", markup=False, highlight=False)
    elif _noting.get():
        sys.stderr.write(f"stepgraph: {printable(text)}\n")


@contextmanager
def counting(label: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances a progress bar by a number of finished items."""
    bars = _drawing.get()
    if bars is None:
        yield lambda _: None
        return
    task = bars.add_task(printable(label)[:80], total=total)
    try:
        yield lambda done: bars.update(task, advance=done)
    finally:
        bars.remove_task(task)


def track(items: Iterable[_Item], label: str, total: int | None = None) -> Iterator[_Item]:
    """Yield the items, counting each one as done when the next is requested."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    with counting(label, total) as done:
        for item in items:
            yield item
            done(1)


def rate(speed: float) -> str:
    """Format a rate, given per second, in the first of second, minute and hour that reaches 1.

    >>> rate(1234.5), rate(0.25), rate(0.001)
    ('1,234/s', '15/min', '3.6/h')
    """
    for seconds, unit in ((1, "s"), (60, "min"), (3600, "h")):
        number = speed * seconds
        if number >= 1 or unit == "h":
            return f"{number:,.0f}/{unit}" if number >= 10 else f"{number:.2g}/{unit}"
    raise AssertionError("the last unit fits all")


def _bars() -> Progress:
    from rich import progress
    from rich.console import Console
    from rich.text import Text

    class Rate(progress.ProgressColumn):
        def render(self, task: progress.Task) -> Text:
            return Text(rate(task.speed) if task.speed else "")

    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        Rate(),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
