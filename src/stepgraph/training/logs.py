"""Logs for TensorBoard, and the curve as a table."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from stepgraph.errors import MissingExtraError
from stepgraph.files.disk import write_text
from stepgraph.training.state import EpochRecord


class Logs:
    """What TensorBoard shows: loss, rate, clips a second and accuracy by step.

    Parameters
    ----------
    folder
        None writes nothing.
    step
        Steps that are done; what was logged after them, before a run was killed, is dropped.
    """

    def __init__(self, folder: Path | None, step: int) -> None:
        self._writer: Any = _writer(folder, step) if folder is not None else None
        self._since = time.perf_counter()

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()

    def step(self, step: int, *, loss: float, rate: float, accuracy: float, clips: int) -> None:
        """Log the last steps; ``clips`` is how many were seen since the last call."""
        now = time.perf_counter()
        speed, self._since = clips / max(now - self._since, 1e-9), now
        if self._writer is None:
            return
        shown = {"loss": loss, "rate": rate, "accuracy": accuracy, "clips per second": speed}
        for name, value in shown.items():
            self._writer.add_scalar(f"train/{name}", value, step)

    def epoch(self, number: int, record: EpochRecord) -> None:
        """Log the means of an epoch."""
        if self._writer is None:
            return
        self._writer.add_scalar("epoch/loss", record.loss, number)
        self._writer.add_scalar("epoch/accuracy", record.accuracy, number)
        self._writer.flush()


def _writer(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtraError(
            "logs for TensorBoard need the 'train' extra; run: pip install 'stepgraph[train]', or "
            "train without logs"
        ) from error
    return SummaryWriter(str(folder), purge_step=step or None)


def write_curve(path: Path, records: Sequence[EpochRecord]) -> None:
    """Write one line an epoch, for spreadsheets."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow([field.name for field in fields(EpochRecord)])
    writer.writerows(astuple(record) for record in records)
    write_text(path, buffer.getvalue())
