"""Work ahead in another thread, so that two cores have something to do."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


def in_another_thread(work: Callable[[_Given], _Made], given: Iterable[_Given]) -> Iterator[_Made]:
    """Work on one thing while what was made of the one before is used, and the next is read."""
    thread = ThreadPoolExecutor(1)
    begun: deque[Future[_Made]] = deque()
    try:
        for one in given:
            begun.append(thread.submit(copy_context().run, work, one))
            if len(begun) > 1:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        thread.shutdown(cancel_futures=True)
