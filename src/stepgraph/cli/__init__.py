"""The command line: one verb per stage, one function per verb.

Results go to stdout, progress and warnings to stderr.  Exit code 0 is success, 1 an error in one
line, 2 wrong usage.  Nothing heavy is imported before a verb runs, so that help is instant.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from stepgraph import progress
from stepgraph.cli.parser import make_parser, refuse_what_would_be_ignored
from stepgraph.errors import IncompleteError, StepgraphError, one_line, printable


def run() -> None:
    """Entry point of the ``stepgraph`` command."""
    # Products of one video are small: threads that wait for one another take three times as long
    # beside other work, and round otherwise on other machines.  numpy reads it when imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    given = sys.argv[1:] if argv is None else list(argv)
    warnings.showwarning = _show_warning
    failed = ""
    try:
        args = make_parser(given).parse_args(given)
        args.given = given
        if args.offline:
            os.environ["HF_HUB_OFFLINE"] = "1"
        with progress.shown():
            try:
                refuse_what_would_be_ignored(args)
                answer = args.run(args)
            except IncompleteError as error:
                answer, failed = error.answer, str(error)
        print(printable(answer, lines=True))
        sys.stdout.flush()
        if failed:
            return _fail(failed)
    except KeyboardInterrupt:
        return _fail(
            "interrupted; finished encodings are kept, run the same command again to continue"
        )
    except BrokenPipeError:
        # The reader of a pipe left; python must not complain about it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (StepgraphError, OSError) as error:
        if "--debug" in given:
            raise
        return _fail(str(error))
    return 0


def _fail(message: str) -> int:
    print(f"stepgraph: error: {one_line(message)}", file=sys.stderr)
    return 1


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"stepgraph: warning: {one_line(str(message))}", file=sys.stderr)
