"""The shards of a corpus as tasks of Ray, on one machine or many; the extra ``cluster``.

Ray restarts a task elsewhere when its machine is lost.  Results are merged and stored here, so
the same command continues an interrupted run.  Every machine must see the source under the same
path.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from itertools import islice
from typing import Any

from stepgraph.errors import ConfigError, MissingExtraError, StepgraphError, one_line
from stepgraph.pipeline.shards import Engine, Job, Piece, Work

# Retries of a task whose machine was lost, and waiting tasks for each CPU.
_RETRIES, _AHEAD = 10, 2


def on_cluster(address: str) -> Engine:
    """Make an engine for a cluster: its address, or ``auto`` to join or start one here."""
    ray = _ray()

    def run(job: Job, work: Work, tasks: Sequence[tuple[Piece, frozenset[str]]]) -> Iterator[Any]:
        # Messages of Ray, such as that a node was lost, are no part of the answer.
        with redirect_stdout(sys.stderr), _joined(ray, address):
            task = ray.remote(work).options(num_cpus=1, max_retries=_RETRIES)
            shared, remaining = ray.put(job), iter(tasks)
            waiting: list[Any] = []
            while True:
                # Keep every CPU busy; machines come and go.
                room = int(_AHEAD * ray.cluster_resources().get("CPU", 1)) - len(waiting)
                waiting += [task.remote(shared, *one) for one in islice(remaining, max(0, room))]
                if not waiting:
                    return
                done, waiting = ray.wait(waiting, num_returns=1)
                yield _result(ray, done[0])

    return run


def _result(ray: Any, reference: Any) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, StepgraphError):
            raise error.cause from None
        raise


@contextmanager
def _joined(ray: Any, address: str) -> Iterator[None]:
    """Connect to a cluster, and leave it afterwards if it was joined here."""
    if ray.is_initialized():
        yield
        return
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        if address == "auto":
            try:
                ray.init(address="auto", **quiet)
            except ConnectionError:
                ray.init(include_dashboard=False, **quiet)
        else:
            ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ConfigError(
            f"cluster (--cluster) must be 'auto' or the address of a running cluster, got "
            f"{address!r} ({one_line(str(error), 120)}); start one with: ray start --head"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise MissingExtraError(
            "a cluster needs the 'cluster' extra; run: pip install 'stepgraph[cluster]', or use "
            "processes of this machine (--workers N)"
        ) from error
    return ray
