"""The paper's tables, measured on any data set that has a truth, beside the printed numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from stepgraph.core import Dataset
from stepgraph.encoders import Encoder
from stepgraph.errors import ConfigError
from stepgraph.experiments.downstream import make_tasks_table
from stepgraph.experiments.figures import Figure, write_figures
from stepgraph.experiments.methods import METHODS
from stepgraph.experiments.plans import (
    PLANS,
    make_behaviors_table,
    make_noise_table,
    make_table,
)
from stepgraph.experiments.setting import Options, ResultStore, Setting, prepare
from stepgraph.experiments.table import Table
from stepgraph.experiments.transfer import make_transfer_table
from stepgraph.pipeline import TRUTH, nothing_left, require_narration

__all__ = [
    "ALIASES",
    "OF_THE_PAPER",
    "TABLES",
    "Options",
    "Table",
    "draw_figures",
    "open_setting",
    "run_table",
]

TABLES = (*PLANS, "noise", "compat", "table3", "transfer")
"""Names of the tables that are measured on one data set."""

ALIASES = {"tasks": "table3", "downstream": "table4"}
"""Names of tables until 0.2.0."""

OF_THE_PAPER = (
    *("table1", "table2", "table3", "table4", "table1-expanded", "ablations", "metrics"),
    *("entropy", "noise", "thresholds", "compat"),
)
"""Names of the tables that the paper prints, and of the one for its scripts' behaviours."""


def run_table(
    name: str,
    dataset: Dataset,
    *,
    encoder: Encoder,
    state: Path | None = None,
    setting: Setting | None = None,
    **options: Any,
) -> Table:
    """Measure one of the paper's tables.

    Parameters
    ----------
    name
        One of ``TABLES``.
    dataset
        Videos with their vocabulary and truth.
    state
        JSON file of finished results; an interrupted run continues from it.
    setting
        Result of :func:`open_setting`, for several tables of the same data and options.
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
    name = ALIASES.get(name, name)
    if name not in TABLES:
        raise ConfigError(f"table must be one of {', '.join(TABLES)}, got {name!r}")
    if name in ("table3", "transfer"):
        chosen = _options(dataset, encoder, options)
        if name == "table3":
            return make_tasks_table(dataset, encoder, chosen)
        folder = state.with_name("transfer") if state else None
        return make_transfer_table(dataset, encoder, chosen, folder)
    if options.get("models"):
        raise ConfigError(f"models require table 'table3', got {name!r}; omit them")
    if setting is None:
        setting = open_setting(dataset, encoder=encoder, state=state, **options)
    if not any(video.id in setting.truth for video in setting.dataset.videos):
        raise nothing_left(dataset, TRUTH)
    if name == "noise":
        return make_noise_table(setting, encoder)
    if name == "compat":
        return make_behaviors_table(setting)
    return make_table(PLANS[name], setting)


def open_setting(
    dataset: Dataset, *, encoder: Encoder, state: Path | None = None, **options: Any
) -> Setting:
    """Score a data set once, and mine its graph, for tables and figures; see :func:`run_table`."""
    return prepare(dataset, encoder, _options(dataset, encoder, options), ResultStore(state))


def draw_figures(setting: Setting, folder: Path) -> list[Figure]:
    """Write every figure of the paper that a source allows, as SVG."""
    modality = "text" if "text" in setting.scores else "video"
    baseline = METHODS["distant" if modality == "text" else "videoclip"]
    labels = {
        method.name: method.label(setting, modality) for method in (baseline, METHODS["ours"])
    }
    return write_figures(folder, setting.graphs[modality], labels, setting.truth)


def _options(dataset: Dataset, encoder: Encoder, given: Mapping[str, Any]) -> Options:
    accepted = [one.name for one in fields(Options)]
    for option in given:
        if option not in accepted:
            raise ConfigError(f"a table has no option {option!r}; it has {', '.join(accepted)}")
    chosen = Options(**given)
    if not chosen.scores and not chosen.models:
        require_narration(dataset, encoder)
    return chosen
