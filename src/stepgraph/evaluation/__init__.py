"""What labels are worth: metrics of rows, of segments and by entropy, and their report."""

from __future__ import annotations

from stepgraph.evaluation.report import Report, evaluate

__all__ = ["Report", "evaluate"]
