"""The paper's tables, measured on any data set that has a truth, beside what the paper prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stepgraph.core import Dataset
from stepgraph.encoders import Encoder
from stepgraph.errors import ConfigError
from stepgraph.experiments.behaviours import make_behaviours_table
from stepgraph.experiments.classification import make_tasks_table
from stepgraph.experiments.measure import Bench
from stepgraph.experiments.noise import make_noise_table
from stepgraph.experiments.plans import PLANS, make_table
from stepgraph.experiments.setting import Options, make_options, prepare
from stepgraph.experiments.state import State
from stepgraph.experiments.table import Table
from stepgraph.experiments.transfer import make_transfer_table

__all__ = ["TABLES", "Options", "Table", "run_table"]

TABLES = (*PLANS, "noise", "compat", "tasks", "transfer")
"""Names of the tables."""


def run_table(
    name: str, dataset: Dataset, *, encoder: Encoder, state: Path | None = None, **options: Any
) -> Table:
    """Measure one of the paper's tables.

    Parameters
    ----------
    name
        One of ``TABLES``.
    dataset
        Videos with their vocabulary and truth.
    state
        JSON file that keeps what is finished; an interrupted run goes on from it.
    **options
        See :class:`Options`: ``seed``, ``threshold``, ``parts``, ``split``, ``graph``, ``noise``,
        ``scores``, ``video_threshold``.

    Examples
    --------
    >>> from stepgraph import load_encoder, open_source
    >>> table = run_table("thresholds", open_source("demo"), encoder=load_encoder())
    >>> [row.name for row in table.rows][:2]
    ['DistantSup.', 'Ours w/ γ=0.3']
    """
    if name not in TABLES:
        raise ConfigError(f"table must be one of {', '.join(TABLES)}, got {name!r}")
    chosen = make_options(options)
    if name == "tasks":
        return make_tasks_table(dataset, encoder, chosen)
    if name == "transfer":
        folder = state.with_name("transfer") if state else None
        return make_transfer_table(dataset, encoder, chosen, folder)
    done = State(state)
    bench = Bench(prepare(dataset, encoder, chosen), done)
    if name == "noise":
        return make_noise_table(bench, encoder)
    if name == "compat":
        return make_behaviours_table(bench)
    return make_table(PLANS[name], bench)
