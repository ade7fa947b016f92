"""Train a video model on the labels of the task graph.

Modules here are made of torch and import it at the top; everybody else imports them late.  Names
are imported when first used, so that processes that only decode videos do without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepgraph.training.pretraining import TrainingResult, train
    from stepgraph.training.schedule import PAPER, Phase, Running, TrainingOptions, short_phases

__all__ = [
    "PAPER",
    "Phase",
    "Running",
    "TrainingOptions",
    "TrainingResult",
    "short_phases",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "pretraining" if name in ("TrainingResult", "train") else "schedule"
    return getattr(import_module(f"{__name__}.{home}"), name)
