"""What somebody who works would ask: what comes next, what is missing, what went wrong, a plan.

All of it is learned from executions, sequences of keysteps: of a truth, of corrections, or as they
were recognised in the videos that a graph was mined from.
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
