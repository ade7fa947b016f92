"""Run the command line with ``python -m stepgraph``."""

from stepgraph.cli import run

run()
