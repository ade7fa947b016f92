"""Logs for TensorBoard, and the curve as a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from stepgraph.errors import MissingExtraError
from stepgraph.files.disk import write_text
from stepgraph.training.state import EpochRecord


def open_logs(folder: Path, step: int) -> Any:
    """What TensorBoard shows by step; what a killed run logged after ``step`` is dropped."""
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
