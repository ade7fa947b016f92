"""What an error or a line of output must look like where somebody reads it in a terminal."""

import io
import unicodedata
from contextlib import redirect_stderr

from stepgraph import cli

LONGEST = 2000


def require_error(message):
    """Refuse a message that is not one line, too long, or printed with control characters."""
    assert message.strip(), "an error without a message"
    assert len(message) < LONGEST, f"has {len(message):,} characters: {message[:200]!r}"
    said = io.StringIO()
    with redirect_stderr(said):
        cli._fail(message)
    line = said.getvalue()
    assert line.endswith("\n"), repr(line[-80:])
    require_printable(line[:-1])


def require_printable(line):
    """Refuse what would move the cursor, colour the screen, or begin a line of its own."""
    shown = line.replace("\t", " ")
    wrong = [c for c in shown if unicodedata.category(c) in ("Cc", "Zl", "Zp", "Cs")]
    assert not wrong, f"prints {wrong[0]!r} in {line[:300]!r}"
