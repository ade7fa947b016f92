"""The true procedures of the generated clips: which keysteps a task has, in which order."""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """A keystep in a task's procedure.

    Attributes
    ----------
    often
        Share of the videos in which it is done at all.
    swap
        Share of the videos in which it comes after the next one.
    again
        Share of the videos in which it is done a second time, one keystep later.
    """

    keystep: str
    often: float = 1.0
    swap: float = 0.0
    again: float = 0.0


TASKS: dict[str, tuple[Step, ...]] = {
    "Build a toy cart": (
        Step("wipe the bench with the turquoise cloth", often=0.5),
        Step("slide the red block in from the left"),
        Step("push the yellow rod in from the right"),
        Step("spin the green wheel", swap=0.5),
        Step("spin the orange wheel"),
        Step("tap the purple wedge", often=0.5),
        Step("lower the pink plate", swap=0.7),
        Step("drop the blue ball", often=0.8),
    ),
    "Set up a marble run": (
        Step("wipe the bench with the turquoise cloth", often=0.4),
        Step("lift the blue rod"),
        Step("slide the orange plate in from the left", swap=0.7),
        Step("tap the purple wedge", often=0.8),
        Step("twist the red ring"),
        Step("drop the blue ball", again=0.4),
        Step("drop the green ball", often=0.7),
        Step("bounce the pink ball", often=0.5),
        Step("shake the yellow block"),
    ),
    "Wire a signal lamp": (
        Step("slide the green block in from the right"),
        Step("twist the yellow ring", swap=0.7, again=0.2),
        Step("lower the red rod"),
        Step("squeeze the blue block"),
        Step("flash the red lamp", swap=0.5),
        Step("flash the green lamp"),
        Step("lift the purple plate", often=0.8),
    ),
    "Assemble a wind spinner": (
        Step("wipe the bench with the turquoise cloth", often=0.4),
        Step("raise the green rod"),
        Step("slide the pink star in from the left", swap=0.7),
        Step("tap the orange rod"),
        Step("spin the orange wheel", often=0.5),
        Step("spin the pink star", again=0.4),
        Step("puff up the turquoise ball"),
    ),
    "Press a paper medal": (
        Step("slide the purple plate in from the right"),
        Step("drop the orange ring"),
        Step("squeeze the red block", swap=0.5, again=0.2),
        Step("squeeze the blue block", often=0.7),
        Step("lift the orange ring"),
        Step("flash the blue lamp", swap=0.7),
        Step("shake the yellow star"),
    ),
    "Fix a wobbly stool": (
        Step("lift the turquoise plate"),
        Step("twist the yellow ring", swap=0.7),
        Step("push the green rod in from the left"),
        Step("tap the green rod", again=0.3),
        Step("tap the purple wedge", often=0.6),
        Step("lower the turquoise plate"),
        Step("spin the purple wheel", often=0.5, swap=0.5),
        Step("rock the turquoise plate"),
    ),
}
"""The true procedures: an order of keysteps as somebody wrote it down, and how people depart from
it: some keysteps are optional, some are repeated, and some are mostly done the other way round."""
