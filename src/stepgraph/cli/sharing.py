"""Where the work of a verb is shared: processes of this machine, or a cluster."""

from __future__ import annotations

import argparse
from typing import Any

from stepgraph.core import Dataset
from stepgraph.encoders import EncoderOptions
from stepgraph.encoders.text import TextEncoder
from stepgraph.errors import ConfigError
from stepgraph.pipeline.shards import LARGE, Engine, in_processes
from stepgraph.scoring import Scorer


def engine_of(args: argparse.Namespace) -> Engine | None:
    """What works on shards, where that is asked for."""
    if args.cluster is not None:
        from stepgraph.pipeline.cluster import on_cluster

        return on_cluster(args.cluster)
    if args.workers is None:
        return None
    if args.workers < 1:
        raise ConfigError(f"--workers must be at least 1, got {args.workers}")
    return in_processes(args.workers)


def limit_cache(args: argparse.Namespace, dataset: Dataset, scorer: Scorer) -> None:
    """Let a large source fill the cache of embeddings only where that is asked for."""
    args.remember = args.cache or getattr(dataset.videos, "size", 0) < LARGE
    if isinstance(scorer, TextEncoder):
        scorer.remembers = args.remember


def job_fields(args: argparse.Namespace, encoder: EncoderOptions) -> dict[str, Any]:
    """What jobs of all verbs are made from; the encoder as it was asked for."""
    return {
        "source": args.source,
        "encoder": encoder,
        "opening": args.opening,
        "strict": args.strict,
        "remember": args.remember,
    }
