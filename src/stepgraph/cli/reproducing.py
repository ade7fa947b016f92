"""The verb for the tables and figures of the paper, one of them or all."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

from stepgraph.assistant import open_executions
from stepgraph.cli import arguments
from stepgraph.cli.learning import named_places, open_models, open_pretraining, probed
from stepgraph.cli.verbs import open_with_truth
from stepgraph.core import Dataset, Scores
from stepgraph.datasets import build_vocabulary
from stepgraph.encoders import Encoder, EncoderOptions, load_encoder
from stepgraph.errors import ConfigError, DataError, DiskError, StepgraphError
from stepgraph.experiments import (
    ALIASES,
    OF_THE_PAPER,
    TABLES,
    draw_figures,
    open_setting,
    run_table,
)
from stepgraph.experiments.assistance import ASSISTED, measure
from stepgraph.experiments.figures import Figure
from stepgraph.experiments.page import write_page
from stepgraph.experiments.probing import ProbeOptions
from stepgraph.experiments.table import Table
from stepgraph.files.disk import write_text
from stepgraph.graph.saving import load_graph
from stepgraph.pipeline import ScorerChoice, open_scorer, uses_vision
from stepgraph.problems import Problems
from stepgraph.progress import track
from stepgraph.scoring import Scorer, StoredScores, score
from stepgraph.vocabulary import read_vocabulary

_BUILT_IN = "colour:motion"
_TABLE4, _FIGURES, _ALL = "table4", "figures", "all"


def reproduce(args: argparse.Namespace) -> str:
    """Measure a table of the paper, draw its figures, or write all that the source allows."""
    args.table = ALIASES.get(args.table, args.table)
    if args.output:
        arguments.must_be_writable(args.output)
    if args.table in ASSISTED:
        done = open_executions(args.source, strict=bool(args.strict))
        return arguments.show_table(measure(args.table, done), args, args.table, done.problems)
    choices = (*TABLES, _TABLE4, _FIGURES, _ALL)
    if args.table not in choices:
        names = ", ".join((*choices, *ASSISTED))
        raise ConfigError(f"table must be one of {names}, got {args.table!r}")
    if args.table in (_FIGURES, _ALL) and not args.output:
        raise ConfigError(f"{args.table} requires -o DIR, the folder to write to")
    _refuse_what_would_be_ignored(args)
    if args.table == _TABLE4:
        problems = Problems()
        return arguments.show_table(_table4(args, problems), args, _TABLE4, problems)
    dataset, encoder, options = _opened(args)
    if args.table == _FIGURES:
        setting = open_setting(dataset, encoder=encoder, **options)
        return _show_figures(args, draw_figures(setting, args.output), dataset.problems)
    if args.table == _ALL:
        return _reproduce_all(args, dataset, encoder, options)
    table = run_table(
        args.table,
        dataset,
        encoder=encoder,
        state=args.output / f"{args.table}.state.json" if args.output else None,
        **options,
    )
    return arguments.show_table(table, args, args.table, dataset.problems)


def _table4(args: argparse.Namespace, problems: Problems) -> Table:
    models = open_models(named_places(args.model), problems)
    backbones = {name: one for name, one in models.items() if not isinstance(one, StoredScores)}
    if not backbones:
        raise ConfigError(
            "table4 must have features to probe, got none; pass --model NAME=DIR, a folder that "
            "stepgraph encode wrote, or --model NAME=ENCODER"
        )
    return probed(args, [args.source], backbones, problems)


def _opened(args: argparse.Namespace) -> tuple[Dataset, Encoder, dict[str, Any]]:
    """Open the data set, the encoder of its text, and the options of the tables."""
    named = {"name": args.encoder} if args.encoder else {}
    encoder = EncoderOptions(**named, **arguments.given_fields(args, EncoderOptions))
    if not encoder.uses_speech:
        raise ConfigError(
            f"--encoder must encode sentences, for the rows of text, got {encoder.name!r}; name "
            f"a video encoder with --video"
        )
    dataset = open_with_truth(
        args, scorer_uses_vision=bool(args.video or args.video_scores or args.model)
    )
    _refuse_without_video(args, dataset)
    if dataset.vocabulary is None and args.vocabulary:
        dataset = replace(dataset, vocabulary=read_vocabulary(args.vocabulary))
    stored, threshold = args.video_scores, args.video_threshold
    if threshold is None:  # scores of an encoder are on the scale of the text's
        threshold = args.threshold if stored is None else 0.3
    seen = f"{_video_encoder(args, dataset)}, on the common scale (docs/video.md)"
    if stored is not None:
        seen = f"stored in {stored.name}, scale {args.scale}"
    options = {
        "seed": args.seed,
        "threshold": args.threshold,
        "split": args.split,
        "graph": load_graph(args.graph) if args.graph else None,
        "noise": build_vocabulary(args.noise_from) if args.noise_from else None,
        "scores": {} if args.table == "transfer" else _video_scores(args, dataset),
        "video_threshold": float(threshold),
        "video_scores": seen,
    }
    if models := named_places(args.model):
        options["models"] = opened = open_models(models, dataset.problems)
        for name, model in opened.items():
            if not uses_vision(model):
                raise ConfigError(f"--model must encode video, got {models[name]!r} for {name!r}")
        options["pretraining"] = open_pretraining(args)
    return dataset, load_encoder(encoder), options


def _reproduce_all(
    args: argparse.Namespace, dataset: Dataset, encoder: Encoder, options: dict[str, Any]
) -> str:
    """Write every table and figure that the source allows, and one page of all of them."""
    tables, missing, problems = dict[str, Table](), dict[str, str](), Problems()
    state = args.output / "all.state.json"
    plain = {name: value for name, value in options.items() if name not in _OF_MODELS}
    setting = open_setting(dataset, encoder=encoder, state=state, **plain)
    jobs: dict[str, Callable[[], Table]] = {
        name: partial(run_table, name, dataset, encoder=encoder, setting=setting)
        for name in OF_THE_PAPER
    }
    jobs["table3"] = partial(run_table, "table3", dataset, encoder=encoder, **options)
    jobs[_TABLE4] = partial(_table4, args, problems)
    for name, job in jobs.items():
        try:
            tables[name] = job()
        except DiskError:
            raise
        except StepgraphError as error:
            missing[name] = str(error)
            continue
        arguments.write_table(tables[name], args.output, name)
    figures = draw_figures(setting, args.output)
    if not tables and not any(one.file for one in figures):
        why = "; ".join(dict.fromkeys(missing.values()))
        raise DataError(f"{args.source}: must allow a table or a figure, got none: {why}")
    title = f"The paper's tables and figures, measured on {dataset.name}"
    page = args.output / "index.html"
    write_text(page, write_page(title, dataset.name, tables, figures, missing))
    lines = [f"{name}: {args.output / name}.md" for name in tables]
    lines += [*_described(figures), *(f"{name}: none: {why}" for name, why in missing.items())]
    content: dict[str, Any] = {"tables": [*tables], "missing": missing, "page": str(page)}
    content["figures"] = _listed(figures)
    args.json = args.format == "json"
    answer = arguments.render(args, "\n".join([*lines, f"Open {page} in a browser."]), **content)
    return arguments.conclude(answer, args, dataset.problems, problems)


_OF_MODELS = ("models", "pretraining")


def _show_figures(args: argparse.Namespace, figures: list[Figure], problems: Problems) -> str:
    args.json = args.format == "json"
    answer = arguments.render(args, "\n".join(_described(figures)), figures=_listed(figures))
    return arguments.conclude(answer, args, problems)


def _described(figures: list[Figure]) -> list[str]:
    return [
        f"figure {one.number}: {one.file}" if one.file else f"figure {one.number}: none: {why}"
        for one in figures
        for why in (one.caption,)
    ]


def _listed(figures: list[Figure]) -> list[dict[str, str | None]]:
    return [
        {"number": one.number, "file": str(one.file or "") or None, "about": one.caption}
        for one in figures
    ]


def _video_scores(args: argparse.Namespace, dataset: Dataset) -> dict[str, list[Scores]]:
    """Return scores of the video modality, stored or from an encoder; empty without either."""
    if dataset.vocabulary is None:
        return {}
    args.stored = Problems(strict=bool(args.strict))
    how = {"scale": args.scale, "seconds_per_row": args.every, "problems": args.stored}
    if args.video_scores is not None:
        scorer: Scorer = open_scorer(ScorerChoice(scores=args.video_scores, **how))
    else:
        name = _video_encoder(args, dataset)
        if name is None:
            return {}
        scorer = open_scorer(ScorerChoice({"name": name}, features=args.features, **how))
    scored = score(dataset.videos, dataset.vocabulary, scorer, problems=dataset.problems)
    return {"video": list(track(scored, "looking"))}


_ONLY = {
    "noise_from": ("noise",),
    "model": ("table3", _TABLE4),
    "pretrained_on": ("table3", _TABLE4),
    "allow_shared": ("table3", _TABLE4),
    **{one.name: (_TABLE4,) for one in fields(ProbeOptions) if one.name != "seed"},
}
"""Tables that an option belongs to, beside all of them."""

_SCORED = ("graph", "video", "video_scores", "features", "encoder", "video_threshold")
"""Options of what is scored, which table 4 does not do."""


def _refuse_what_would_be_ignored(args: argparse.Namespace) -> None:
    for name, tables in _ONLY.items():
        if getattr(args, name, None) and args.table not in (*tables, _ALL):
            flag, choices = f"--{name.replace('_', '-')}", " or ".join(tables)
            raise ConfigError(f"{flag} requires {choices}, got {args.table}; remove it")
    if (args.pretrained_on or args.allow_shared) and not args.model:
        raise ConfigError("--pretrained-on and --allow-shared require --model")
    for name in _SCORED if args.table == _TABLE4 else ():
        if getattr(args, name):
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(f"{flag} does not apply to table4, which probes features; remove it")


def _refuse_without_video(args: argparse.Namespace, dataset: Dataset) -> None:
    if args.features and not _video_encoder(args, dataset):
        raise ConfigError("--features requires --video, the encoder of these features")
    if args.scale != "raw" and not args.video_scores:
        raise ConfigError("--scale requires --video-scores")


def _video_encoder(args: argparse.Namespace, dataset: Dataset) -> str | None:
    """Return the chosen video encoder, or the built-in one of the generated corpus."""
    if args.video:
        return str(args.video)
    return _BUILT_IN if dataset.name.startswith("generated") else None
