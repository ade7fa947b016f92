"""What an error or a line of output must look like where somebody reads it in a terminal."""

import unicodedata

from stepgraph.errors import one_line

LONGEST = 2000


def require_error(message):
    """Refuse a message that the command line does not print as one line of some length."""
    line = one_line(message)
    assert line.strip(), "is empty"
    assert len(line) < LONGEST, f"has {len(line):,} characters: {line[:200]!r}"
    require_printable(line)


def require_printable(line):
    """Refuse what would move the cursor, colour the screen, or begin a line of its own."""
    shown = line.replace("\t", " ")
    wrong = [c for c in shown if unicodedata.category(c) in ("Cc", "Zl", "Zp", "Cs")]
    assert not wrong, f"prints {wrong[0]!r} in {line[:300]!r}"
