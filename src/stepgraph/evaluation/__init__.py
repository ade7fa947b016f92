"""What labels are worth: metrics of rows, of segments and by entropy, and their report.

Metrics take two arrays, or the labels of one video and its truth; those that can be pooled take
the counts of many videos, too.
"""

from __future__ import annotations

from stepgraph.evaluation.entropy import accuracy_by_entropy
from stepgraph.evaluation.metrics import (
    Tally,
    accuracy,
    accuracy_per_keystep,
    f1,
    f1_per_keystep,
    iou,
    iou_per_keystep,
    mean_defined,
    precision,
    tally,
)
from stepgraph.evaluation.report import (
    Report,
    calibration_error,
    evaluate,
    over_splits,
    task_accuracy,
)
from stepgraph.evaluation.segments import (
    crosstask_recall,
    edit_distance,
    mean_average_precision,
    segment_f1,
)

__all__ = [
    "Report",
    "Tally",
    "accuracy",
    "accuracy_by_entropy",
    "accuracy_per_keystep",
    "calibration_error",
    "crosstask_recall",
    "edit_distance",
    "evaluate",
    "f1",
    "f1_per_keystep",
    "iou",
    "iou_per_keystep",
    "mean_average_precision",
    "mean_defined",
    "over_splits",
    "precision",
    "segment_f1",
    "tally",
    "task_accuracy",
]
