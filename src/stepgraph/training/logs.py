"""Logs for TensorBoard, and the curve as a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from stepgraph.errors import MissingExtraError
from stepgraph.files.disk import write_text
from stepgraph.training.state import EpochRecord


class Logs:
    """What TensorBoard shows by step; without a folder, nothing is written.

    What was logged after ``step``, before a run was killed, is dropped.
    """

    def __init__(self, folder: Path | None, step: int) -> None:
        self._writer: Any = None
        if folder is None:
            return
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtraError(
                "logs for TensorBoard need the 'train' extra; run: pip install "
                "'stepgraph[train]', or train without logs"
            ) from error
        self._writer = SummaryWriter(str(folder), purge_step=step or None)

    def write(self, step: int, shown: Mapping[str, float]) -> None:
        """Log some numbers of a step or an epoch."""
        if self._writer is not None:
            for name, value in shown.items():
                self._writer.add_scalar(name, value, step)
            self._writer.flush()

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()


def write_curve(path: Path, records: Sequence[EpochRecord]) -> None:
    """Write one line an epoch, for spreadsheets."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow([field.name for field in fields(EpochRecord)])
    writer.writerows(astuple(record) for record in records)
    write_text(path, buffer.getvalue())
