"""What is watched while an input is read: which lines it reaches, and what it must not do."""

import os
import sys
from pathlib import Path

import stepgraph

_PACKAGE = str(Path(stepgraph.__file__).parent) + os.sep
_PROGRAMS = ("subprocess.", "os.fork", "os.posix_spawn")
_FORBIDDEN = (
    *("socket.", "os.system", "os.exec", "pickle.find_class", "urllib.", "ftplib."),
    *("smtplib.", "webbrowser."),
)
_MOST_EVENTS = 50_000
_COMPILER = f"{os.sep}numba{os.sep}"
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Lines:
    """Counts the lines of stepgraph that are reached for the first time.

    A function of which every line was seen is not followed any more, so that this costs less and
    less; nor is an input that goes round and round.
    """

    def __init__(self):
        self.new = 0
        self._left = 0
        self._unseen = {}  # by the identity of code, since comparing code is slow
        self._kept = []

    def __enter__(self):
        self.new, self._left = 0, _MOST_EVENTS
        sys.settrace(self._enter_function)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def _enter_function(self, frame, event, argument):
        code = frame.f_code
        unseen = self._unseen.get(id(code))
        if unseen is None:
            ours = code.co_filename.startswith(_PACKAGE)
            unseen = {line for *_, line in code.co_lines() if line} if ours else set()
            self._unseen[id(code)] = unseen
            self._kept.append(code)
        return self._pass_line if unseen else None

    def _pass_line(self, frame, event, argument):
        unseen = self._unseen[id(frame.f_code)]
        if frame.f_lineno in unseen:
            unseen.discard(frame.f_lineno)
            self.new += 1
        self._left -= 1
        if self._left < 0:
            sys.settrace(None)
        return self._pass_line


class Watch:
    """Forbids network, other programs and foreign code, and sees what is written where.

    Attributes
    ----------
    mischief
        What the last input did that it must not do.
    programs
        Whether it may start a process.
    """

    def __init__(self, root):
        self.mischief = []
        self._root = str(root) + os.sep
        self._out = str(root / "out") + os.sep
        self._active = False
        self.programs = False
        sys.addaudithook(self._audit)

    def __enter__(self):
        self.mischief = []
        self._before = _listing(self._root)
        self._active = True

    def __exit__(self, *_):
        self._active = False
        after = _listing(self._root)
        for path in self._before.keys() | after.keys():
            if self._before.get(path) != after.get(path):
                self.mischief.append(f"wrote outside its folder: {path!r}")

    def _audit(self, event, arguments):
        if not self._active:
            return
        if event == "open":
            self._check_open(*arguments)
        elif event.startswith(_FORBIDDEN if self.programs else (*_FORBIDDEN, *_PROGRAMS)):
            self._refuse(f"does what it must not: {event} {arguments!r:.100}")

    def _check_open(self, path, mode, flags):
        if not isinstance(path, str | bytes) or not (flags or 0) & _WRITING:
            return
        place = os.path.abspath(os.fsdecode(path))
        if not place.startswith((self._out, "/dev/")):
            self._refuse(f"opened outside its folder to write: {place!r}")

    def _refuse(self, what):
        if _in_compiler():
            return
        self.mischief.append(what)
        raise PermissionError(what)


def _in_compiler():
    """Whether numba is at work, which keeps what it has compiled in pickles of its own."""
    frame = sys._getframe()
    while frame is not None and _COMPILER not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None


def _listing(root):
    """Size and time of every file below a folder but those of the output."""
    found = {}
    for folder, folders, files in os.walk(root):
        if folder == root:
            folders[:] = [name for name in folders if name != "out"]
        for name in files:
            state = os.lstat(os.path.join(folder, name))
            found[os.path.join(folder, name)] = (state.st_size, state.st_mtime_ns)
    return found
