"""Successors, missing keysteps, mistakes and plans, estimated from executions of tasks.

An execution is a sequence of keysteps: from truth, from annotation, or recognised in a video that
a graph was mined from.
"""

from __future__ import annotations

from stepgraph.assistant.executions import Execution, Executions, open_executions
from stepgraph.assistant.experience import Experience
from stepgraph.assistant.orders import Order, learn_order
from stepgraph.assistant.planning import Plan, make_plans

__all__ = [
    "Execution",
    "Executions",
    "Experience",
    "Order",
    "Plan",
    "learn_order",
    "make_plans",
    "open_executions",
]
