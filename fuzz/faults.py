"""Faults that stepgraph once had, put back one at a time: does a test or a harness notice?

``python -m fuzz.faults`` makes each change of the table below in a copy of the tree, runs the
tests named beside it, and prints a line for it: the point, what was put back, and which test
failed first.  A test that aborts, or runs for minutes, has noticed as well.  Not part of CI.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from fuzz.mutants import ROOT

SECONDS, BYTES = 240, 12 << 30  # of the tests of one fault


class Fault(NamedTuple):
    """What was wrong: a piece of a file as it is, as it was, and the tests that should tell."""

    point: int
    what: str
    file: str
    now: str
    then: str
    tests: str


FAULTS = (
    Fault(
        *(1, "an id that climbs out of its folder is a path", "files/ids.py"),
        *('{"", ".", ".."} &', '{"", "."} &', "trust bad_ids files_ids"),
    ),
    Fault(
        *(1, "an absolute id is a path", "files/ids.py"),
        *('{"", ".", ".."} &', '{".", ".."} &', "trust bad_ids files_ids"),
    ),
    Fault(
        *(1, "an id is not looked at where a file is named after it", "files/ids.py"),
        *("{check_id(id)}{suffix}", "{id}{suffix}", "files_ids"),
    ),
    Fault(
        *(2, "all scores of a video are computed however many they are", "scoring/lazy.py"),
        *("rows * size > LARGEST", "rows * size > 2**30 * LARGEST", "scoring_products"),
    ),
    Fault(
        *(2, "too many scores are refused after they were allocated", "scoring/lazy.py"),
        "        rows, size = len(self), len(self.vocabulary)\n",
        "        rows, size = len(self), len(self.vocabulary)\n"
        "        _ = np.ones((rows, size), np.float32)\n",
        "scoring_products",
    ),
    Fault(
        *(2, "all rows are scored in one piece", "scoring/lazy.py"),
        *("step = 1 + _PIECE // (1 + width)", "step = 1 + count", "scoring_products"),
    ),
    Fault(
        *(2, "the best keystep of a row is looked up among all scores", "scoring/lazy.py"),
        "        # Unobserved rows are part -1, which is the zero behind all others.\n",
        "        return self.values.argmax(axis=1), self.values.max(axis=1)\n",
        "scoring_products",
    ),
    Fault(
        *(3, "a graph names a model to download", "encoders/model_folders.py"),
        *("elif find_cached(kind, model) is None:", "elif False:", "encoders_named"),
    ),
    Fault(
        *(3, "a graph names a folder of this machine", "encoders/model_folders.py"),
        "elif kind in _PATHS or model.startswith(_PATH) or os.path.exists(model):",
        *("elif False:", "encoders_named"),
    ),
    Fault(
        *(3, "features name a model to download", "encoders/stored_features.py"),
        '        require_named(options, f"{self._store.path}: encoder")\n',
        *("", "encoders_named"),
    ),
    Fault(
        *(4, "braces of ASS and SSA take the square of their number", "ingest/timed_text.py"),
        'before, brace, after = text.rpartition("}")',
        *('before, brace, after = text, "", ""', "ingest_styled"),
    ),
    Fault(
        *(4, "braces of MicroDVD take the square of their number", "ingest/timed_text.py"),
        *('said.replace("|", "\\n")', '_STYLE.sub("", said).replace("|", "\\n")'),
        "ingest_styled",
    ),
    Fault(
        *(4, "braces of TTML take the square of their number", "ingest/timed_text.py"),
        '_SPACES.sub(" ", "".join(element.itertext()))',
        '_SPACES.sub(" ", _STYLE.sub("", "".join(element.itertext())))',
        "ingest_styled",
    ),
    Fault(
        *(4, "every chapter looks through all sentences anew", "core/__init__.py"),
        "    @cached_property\n    def _said",
        *("    @property\n    def _said", "export_timeline"),
    ),
    Fault(
        *(4, "every keystep looks through all tasks", "core/vocabulary.py"),
        *("    @cached_property\n    def _tasks_of", "    @property\n    def _tasks_of"),
        "trust_reading",
    ),
    Fault(
        *(4, "keysteps that repeat are counted one by one", "core/vocabulary.py"),
        "name for name, count in Counter(self.keysteps).items() if count > 1",
        "name for name in self.keysteps if self.keysteps.count(name) > 1",
        "trust_reading",
    ),
    Fault(
        *(5, "a parquet file that ends its reader ends stepgraph", "files/arrays/reader.py"),
        "        child = self._running()\n",
        "        from stepgraph.files.arrays.serving import _Server\n\n"
        "        self._here = getattr(self, '_here', None) or _Server()\n"
        "        answer, numbers = self._here.answer(question)\n"
        "        if into is not None:\n"
        "            into.reshape(-1).view(np.uint8)[:] = numbers\n"
        "        return answer\n"
        "        child = self._running()\n",
        "files_reader",
    ),
    Fault(
        *(5, "a reader that was ended is a traceback", "files/arrays/reader.py"),
        *('json.loads(line) if line.endswith(b"\\n") else _FAILED', "json.loads(line)"),
        "files_reader",
    ),
    Fault(
        *(5, "a step count of 5,000 digits is a traceback", "datasets/crosstask.py"),
        *('not re.fullmatch("[0-9]{1,6}", block[3])', "not block[3].isdecimal()"),
        "trust_reading",
    ),
    Fault(
        *(5, "a vertical tab in the header of articles is a traceback", "vocabulary/articles.py"),
        *("_LINE_END.split(text)[:1]", "text.splitlines()[:1]", "trust_reading articles"),
    ),
    Fault(
        *(5, "a damaged cache of embeddings is a traceback", "encoders/cache.py"),
        "except (OSError, sqlite3.Error, ValueError) as error:",
        *("except OSError as error:", "encoders_cache"),
    ),
    Fault(
        *(6, "a vector with flipped bytes is given out", "encoders/cache.py"),
        *("if _checksum(key, data) != checksum:", "if False:", "encoders_cache"),
    ),
    Fault(
        *(6, "the checksum says nothing of the text", "encoders/cache.py"),
        *("blake2b(data, digest_size=_CHECKSUM, key=key)", "blake2b(data, digest_size=_CHECKSUM)"),
        "encoders_cache",
    ),
    Fault(
        *(7, "the name of a file is too long for its disk: a traceback", "files/disk.py"),
        "        got = error.strerror or str(error)\n",
        *("        raise\n", "trust_reading bad_input files_disk"),
    ),
    Fault(
        *(7, "an id that no file can be named after is taken", "files/ids.py"),
        *("> _LONGEST or len(id) > 1000", "> 10 * _LONGEST", "trust bad_ids files_ids"),
    ),
    Fault(
        *(7, "a folder that cannot be listed is left out in silence", "datasets/own.py"),
        *("os.walk(folder, onerror=note)", "os.walk(folder)", "trust_reading"),
    ),
    Fault(
        *(7, "a .json that cannot be read ends the run, also with --skip-bad", "datasets/own.py"),
        "    except OSError:  # of which opening it will say more\n        return False",
        "    except OSError:  # of which opening it will say more\n        raise",
        "trust_reading",
    ),
    Fault(
        *(7, "an error is a line of megabytes", "errors.py"),
        'line = printable(" ".join(message[: 2 * longest].split()))',
        'return printable(" ".join(message.split()))',
        "trust",
    ),
    Fault(
        *(7, "an error quotes megabytes", "errors.py"),
        *("if len(text) <= limit else", "if True else", "trust_reading"),
    ),
    Fault(
        *(8, "what a killed writer left stays", "files/disk.py"),
        *("        _sweep(target.parent.absolute())\n", "", "files_disk"),
    ),
    Fault(
        *(8, "what a living one writes is swept", "files/disk.py"),
        "                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        *("", "files_disk"),
    ),
    Fault(
        *(9, "escape sequences reach the terminal", "errors.py"),
        *("return unsafe.sub(", "return text or unsafe.sub(", "trust"),
    ),
    Fault(
        *(9, "names in a table reach it raw", "export/terminal.py"),
        *("tuple(map(printable, line))", "tuple(line)", "trust"),
    ),
    Fault(
        *(9, "names in a path of the graph reach it raw", "export/answers.py"),
        *("printable(names[keystep]) for", "names[keystep] for", "trust"),
    ),
    Fault(
        *(9, "what is said on the way reaches it raw", "progress.py"),
        'sys.stderr.write(f"stepgraph: {printable(text)}\\n")',
        *('sys.stderr.write(f"stepgraph: {text}\\n")', "progress"),
    ),
    *(
        Fault(
            *(9, f"a cell that begins with {mark} is a formula", "files/cells.py"),
            *(r"[=+\-@\t\r]", rf"[={rest}\t\r]" if mark != "=" else r"[+\-@\t\r]"),
            "export_timeline",
        )
        for mark, rest in (("=", ""), ("+", r"\-@"), ("-", "+@"), ("@", r"+\-"))
    ),
    Fault(
        *(9, "the name of a keystep is written as it is", "export/timeline.py"),
        *('write_cell(cells[name] or "")', 'cells[name] or ""', "export_timeline"),
    ),
    Fault(
        *(9, "the id of a video is written as it is", "export/timeline.py"),
        *("[write_cell(timeline.video.id), *(", "[timeline.video.id, *(", "export_timeline"),
    ),
    Fault(
        *(10, "an error quotes a line of what is no transcript", "ingest/timed_text.py"),
        *(' if any_times else "another line"', "", "trust_reading"),
    ),
    Fault(
        *(10, "an error quotes JSON that is no transcript", "ingest/formats.py"),
        *("return kinds.get(type(value)) or repr(value)", "return repr(value)", "trust_reading"),
    ),
    Fault(
        *(10, "an error quotes a table that is no transcript", "ingest/formats.py"),
        'got = "other times" if line.count("\\t") > 1 else "fewer tabs"',
        *("got = repr(line)", "trust_reading"),
    ),
    Fault(
        *(10, "an error quotes a file that is no truth", "datasets/reading.py"),
        ' if set(header) & set(_COLUMNS) else "none of them"',
        *("", "trust_reading"),
    ),
)


def noticed_by(fault: Fault, folder: Path) -> str:
    """The test that fails first, how else it was noticed, or nothing."""
    path = folder / "src" / "stepgraph" / fault.file
    source = path.read_text("utf-8")
    if source.count(fault.now) != 1:
        raise SystemExit(f"{fault.file} must have once: {fault.now}")
    path.write_text(source.replace(fault.now, fault.then), "utf-8")
    try:
        return failing(fault.tests, folder)
    finally:
        path.write_text(source, "utf-8")


def failing(names: str, folder: Path) -> str:
    """Which of some tests fails first, or how else they do not pass."""
    tests = [f"tests/test_{name}.py" for name in names.split()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, "-m", "not slow and not data and not browser", *tests],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": "src", "PYTHONDONTWRITEBYTECODE": "1"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES)),
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"a test of {tests[0]} that does not end"
    if done.returncode < 0:
        return f"a test of {tests[0]} that is ended"
    found = re.search(r"^(?:FAILED|ERROR) tests/(\S+?\.py(?:::\w+)?)", done.stdout, re.MULTILINE)
    if done.returncode and not found:
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
        return "tests that cannot be run"
    return found[1] if found else ""


def main(argv: list[str] | None = None) -> int:
    """Put each fault back and say what noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("points", nargs="*", type=int, help="of the ten; else all")
    args = parser.parse_args(argv)
    unseen, sound = 0, set[str]()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        kept = shutil.ignore_patterns("__pycache__", ".venv", ".git", ".*_cache", "site")
        shutil.copytree(ROOT, folder, ignore=kept, dirs_exist_ok=True)
        for fault in FAULTS:
            if not args.points or fault.point in args.points:
                if fault.tests not in sound and (found := failing(fault.tests, Path(folder))):
                    raise SystemExit(f"without any fault, there is {found}")
                sound.add(fault.tests)
                found = noticed_by(fault, Path(folder))
                unseen += not found
                shown = f"`{found}`" if "::" in found else found or "**nothing**"
                print(f"| {fault.point} | {fault.what} | {shown} |", flush=True)
    return int(unseen > 0)


if __name__ == "__main__":
    sys.exit(main())
