"""A table of the paper on data with truth: ``python examples/paper_table.py [TABLE [SOURCE]]``.

``table2`` on the embedded corpus unless told otherwise; ``stepgraph reproduce table2 demo`` does
the same.  On CrossTask: ``python examples/paper_table.py table1 crosstask:PATH``.
"""

from __future__ import annotations

import sys

import stepgraph as sg
from stepgraph.experiments import run_table


def main() -> None:
    """Measure the table, print it, and read two of its cells."""
    name, source = (*sys.argv[1:], *("table2", "demo")[len(sys.argv) - 1 :])
    table = run_table(name, sg.open_source(source), encoder=sg.load_encoder())
    print(table.to_text())
    if name == "table2":
        ours, bag = (table.cell(row, "accuracy").value for row in ("Ours", "Bag of Steps"))
        print(f"\nThe graph is worth {ours - bag:+.1f} points over the task's keysteps alone.")


if __name__ == "__main__":
    main()
