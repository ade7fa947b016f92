"""The verb that measures the paper's tables."""

from __future__ import annotations

import argparse
from dataclasses import replace

from stepgraph.cli.asked import must_be_writable, refuse, show_table
from stepgraph.cli.fields import given_fields
from stepgraph.cli.verbs import open_with_truth
from stepgraph.core import Dataset, Scores
from stepgraph.datasets.published import build_vocabulary
from stepgraph.encoders import EncoderOptions, load_encoder
from stepgraph.errors import ConfigError
from stepgraph.experiments import run_table
from stepgraph.graph.saving import load_graph
from stepgraph.pipeline.scorers import Asked, open_scorer
from stepgraph.problems import Problems
from stepgraph.progress import track
from stepgraph.scoring import Scorer, score
from stepgraph.vocabulary import read_vocabulary

_BUILT_IN = "colour:motion"


def reproduce(args: argparse.Namespace) -> str:
    """Measure a table of the paper on any source with truth, beside what the paper prints."""
    if args.output:
        must_be_writable(args.output)
    encoder = load_encoder(_text_options(args))
    dataset = open_with_truth(args, scorer_looks=bool(args.video))
    _refuse_what_would_be_ignored(args, dataset)
    if dataset.vocabulary is None and args.vocabulary:
        dataset = replace(dataset, vocabulary=read_vocabulary(args.vocabulary))
    scores = {} if args.table == "transfer" else _video_scores(args, dataset)
    dataset = _only_seen(dataset, scores)
    table = run_table(
        args.table,
        dataset,
        encoder=encoder,
        state=args.output / f"{args.table}.state.json" if args.output else None,
        seed=args.seed,
        threshold=args.threshold,
        split=args.split,
        graph=load_graph(args.graph) if args.graph else None,
        noise=build_vocabulary(args.noise_from) if args.noise_from else None,
        scores=scores,
        video_threshold=_video_threshold(args),
        video_scores=_video_words(args, dataset),
    )
    return show_table(table, args, args.table, dataset.problems)


def _text_options(args: argparse.Namespace) -> EncoderOptions:
    """Options of the encoder behind the rows of text."""
    named = {"name": args.encoder} if args.encoder else {}
    options = EncoderOptions(**named, **given_fields(args, EncoderOptions))
    if not options.hears:
        raise ConfigError(
            f"--encoder must hear what is said, for the rows of text, got {options.name!r}; name "
            f"an encoder that looks with --video"
        )
    return options


def _video_scores(args: argparse.Namespace, dataset: Dataset) -> dict[str, list[Scores]]:
    """Scores of what is seen, stored or by an encoder; none where neither is asked for."""
    if dataset.vocabulary is None:
        return {}
    args.stored = Problems(strict=bool(args.strict))
    how = {"scale": args.scale, "seconds_per_row": args.every, "problems": args.stored}
    if args.video_scores is not None:
        scorer: Scorer = open_scorer(Asked(scores=args.video_scores, **how))
    else:
        name = _video_encoder(args, dataset)
        if name is None:
            return {}
        scorer = open_scorer(Asked({"name": name}, features=args.features, **how))
    scored = score(dataset.videos, dataset.vocabulary, scorer, problems=dataset.problems)
    return {"video": list(track(scored, "looking"))}


def _refuse_what_would_be_ignored(args: argparse.Namespace, dataset: Dataset) -> None:
    if args.video_scores:
        refuse(args, "--video-scores", ("video", "features"))
    if args.noise_from and args.table != "noise":
        raise ConfigError(f"--noise-from must be of the table noise, got {args.table}; remove it")
    if args.features and not _video_encoder(args, dataset):
        raise ConfigError("--features must be of a video encoder, got none; name it with --video")
    if args.scale != "raw" and not args.video_scores:
        raise ConfigError("--scale must be of stored scores, got none; give --video-scores DIR")


def _only_seen(dataset: Dataset, scores: dict[str, list[Scores]]) -> Dataset:
    """Leave out videos without video scores, so that all columns are of the same ones."""
    if "video" not in scores:
        return dataset
    seen = {one.video for one in scores["video"]}
    return replace(dataset, videos=tuple(v for v in dataset.videos if v.id in seen))


def _video_encoder(args: argparse.Namespace, dataset: Dataset) -> str | None:
    """The encoder asked for; the generated corpus has one that is made for it."""
    if args.video:
        return str(args.video)
    return _BUILT_IN if dataset.name.startswith("generated") else None


def _video_words(args: argparse.Namespace, dataset: Dataset) -> str:
    if args.video_scores is not None:
        return f"stored in {args.video_scores.name}, scale {args.scale}"
    return f"{_video_encoder(args, dataset)}, on the common scale (docs/video.md)"


def _video_threshold(args: argparse.Namespace) -> float:
    """As asked; scores of an encoder are on the scale of the text's."""
    if args.video_threshold is not None:
        return float(args.video_threshold)
    return 0.3 if args.video_scores is not None else float(args.threshold)
