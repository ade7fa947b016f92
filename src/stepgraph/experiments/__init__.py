"""The paper's tables, measured on any data set that has a truth, beside what the paper prints."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from stepgraph.core import Dataset
from stepgraph.encoders import Encoder
from stepgraph.errors import ConfigError
from stepgraph.experiments.downstream import make_tasks_table
from stepgraph.experiments.plans import (
    PLANS,
    make_behaviours_table,
    make_noise_table,
    make_table,
)
from stepgraph.experiments.setting import Options, State, prepare
from stepgraph.experiments.table import Table
from stepgraph.experiments.transfer import make_transfer_table
from stepgraph.pipeline import require_narration

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
        ``scores``, ``video_threshold``, ``models``.

    Examples
    --------
    >>> from stepgraph import load_encoder, open_source
    >>> table = run_table("thresholds", open_source("demo"), encoder=load_encoder())
    >>> [row.name for row in table.rows][:2]
    ['DistantSup.', 'Ours w/ γ=0.3']
    """
    if name not in TABLES:
        raise ConfigError(f"table must be one of {', '.join(TABLES)}, got {name!r}")
    known = [one.name for one in fields(Options)]
    for option in options:
        if option not in known:
            raise ConfigError(f"a table has no option {option!r}; it has {', '.join(known)}")
    chosen = Options(**options)
    if chosen.models and name != "tasks":
        raise ConfigError(f"models must be of the table tasks, got {name}; give none")
    if not chosen.scores and not chosen.models:
        require_narration(dataset, encoder)
    if name == "tasks":
        return make_tasks_table(dataset, encoder, chosen)
    if name == "transfer":
        folder = state.with_name("transfer") if state else None
        return make_transfer_table(dataset, encoder, chosen, folder)
    setting = prepare(dataset, encoder, chosen, State(state))
    if name == "noise":
        return make_noise_table(setting, encoder)
    if name == "compat":
        return make_behaviours_table(setting)
    return make_table(PLANS[name], setting)
