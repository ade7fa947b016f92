"""Where the work of a verb is shared: processes of this machine, or a cluster."""

from __future__ import annotations

import argparse
from typing import Any

from stepgraph.core import Dataset, Vocabulary
from stepgraph.encoders.text import TextEncoder
from stepgraph.errors import ConfigError
from stepgraph.graph import MiningOptions, TaskGraph
from stepgraph.scoring import Scorer


def mine_shared(
    args: argparse.Namespace,
    dataset: Dataset,
    vocabulary: Vocabulary,
    scorer: Scorer,
    how: dict[str, Any],
) -> TaskGraph | None:
    """Mine a source in shards where that is asked for; None where it is not."""
    from stepgraph.pipeline import shards

    size = getattr(dataset.videos, "size", 0)
    remember = args.cache or size < shards.LARGE
    if isinstance(scorer, TextEncoder):
        scorer.remembers = remember
    if args.workers is None and args.cluster is None:
        return None
    if args.workers is not None and args.workers < 1:
        raise ConfigError(f"--workers must be at least 1, got {args.workers}")
    job = shards.Job(
        args.source,
        vocabulary,
        args.asked,
        args.opening,
        how["decoder"],
        {name: how[name] for name in MiningOptions.__dataclass_fields__ if name in how},
        how["decisions"],
        args.strict,
        remember,
    )
    engine = shards.in_processes(args.workers or 1)
    if args.cluster is not None:
        from stepgraph.pipeline.cluster import on_cluster

        engine = on_cluster(args.cluster)
    return shards.mine_shards(job, dataset, args.output, engine)
