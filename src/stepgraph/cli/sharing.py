"""Engines for the shards of a verb: processes of this machine, or a cluster."""

from __future__ import annotations

import argparse
from typing import Any

from stepgraph.cli import arguments
from stepgraph.core import Dataset, Vocabulary
from stepgraph.encoders import Encoder, EncoderOptions
from stepgraph.encoders.encoding import Encoded
from stepgraph.encoders.text import TextEncoder
from stepgraph.errors import ConfigError
from stepgraph.graph import MiningOptions, TaskGraph
from stepgraph.pipeline import encoder_options
from stepgraph.pipeline.shards import LARGE, Engine, in_processes
from stepgraph.scoring import Scorer


def _engine(args: argparse.Namespace, dataset: Dataset, scorer: Scorer) -> Engine | None:
    """Make the engine that the options select, if any; large sources fill no cache by default."""
    args.remember = args.cache or getattr(dataset.videos, "size", 0) < LARGE
    if isinstance(scorer, TextEncoder):
        scorer.remembers = args.remember
    if args.cluster is not None:
        from stepgraph.pipeline.cluster import on_cluster

        return on_cluster(args.cluster)
    if args.workers is None:
        return None
    if args.workers < 1:
        raise ConfigError(f"--workers must be at least 1, got {args.workers}")
    return in_processes(args.workers)


def _fields(args: argparse.Namespace, encoder: EncoderOptions) -> dict[str, Any]:
    """Collect the fields that jobs of all verbs share, with the given encoder options."""
    return {
        "source": args.source,
        "encoder": encoder,
        "opening": args.opening,
        "strict": args.strict,
        "remember": args.remember,
    }


def mine_shared(
    args: argparse.Namespace,
    dataset: Dataset,
    vocabulary: Vocabulary,
    scorer: Scorer,
    how: dict[str, Any],
) -> TaskGraph | None:
    """Mine a source in shards where an engine is selected; else return None."""
    from stepgraph.pipeline.mining import MiningJob, mine_shards

    engine = _engine(args, dataset, scorer)
    if engine is None:
        return None
    names = MiningOptions.__dataclass_fields__
    job = MiningJob(
        **_fields(args, encoder_options(args.arguments.encoder)),
        vocabulary=vocabulary,
        mining={name: value for name, value in how.items() if name in names},
        **{name: value for name, value in how.items() if name not in names},
    )
    return mine_shards(job, dataset, args.output, engine)


def label_shared(
    args: argparse.Namespace,
    dataset: Dataset,
    graph: TaskGraph,
    how: dict[str, Any],
) -> bool:
    """Label a source in shards where an engine is selected; else return False."""
    from stepgraph.labelling.shards import LabelingJob, label_shards

    engine = _engine(args, dataset, how["encoder"])
    if engine is None:
        return False
    encoder = encoder_options(args.arguments.encoder, graph, arguments.decoder_name(args))
    job = LabelingJob(**_fields(args, encoder), graph=graph, decoder=how["decoder"])
    label_shards(job, dataset, args.output, engine, problems=how["problems"])
    return True


def encode_shared(
    args: argparse.Namespace, dataset: Dataset, encoder: Encoder, options: EncoderOptions
) -> Encoded | None:
    """Encode a source in shards where an engine is selected; else return None."""
    from stepgraph.pipeline.encoding import EncodingJob, encode_shards

    engine = _engine(args, dataset, encoder)
    if engine is None:
        return None
    job = EncodingJob(**_fields(args, options), folder=args.output.absolute())
    return encode_shards(job, dataset, encoder, engine)
