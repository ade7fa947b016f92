"""The generated corpus: small workshop clips, rendered to video files once and cached.

All of it is fiction.  It is for trying out visual encoders and speech recognition end to end, from
files; scores on it have no meaning for real videos.
"""

from __future__ import annotations

import json
import shutil
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from stepgraph.core import Dataset
from stepgraph.datasets.generated import speaking
from stepgraph.datasets.generated.render import render
from stepgraph.datasets.generated.scripts import TASKS, Script, write_script
from stepgraph.datasets.own import TRUTH_FILE, VOCABULARY_FILES, Own, open_folder
from stepgraph.errors import ConfigError, DataError, MissingExtraError
from stepgraph.files.disk import cache_folder, write_text
from stepgraph.ingest import Listening
from stepgraph.progress import counting, note, track

VERSION = 2  # of scripts and pictures; a folder of another version is not taken
PER_TASK = 12  # clips of each task
_LIST = "generated.json"
_PARTIAL = ".partial"
_THREADS = 2  # clips rendered at once, each on one thread of its own
_ABANDONED = 3600.0  # seconds after which a half-rendered folder is nobody's


def open_generated(
    seed: int = 0,
    per_task: int = PER_TASK,
    *,
    tasks: Sequence[str] | None = None,
    with_speech: bool = False,
    captions: bool = False,
) -> Dataset:
    """Open the generated corpus; the first time it is rendered, in less than a minute.

    Another ``seed`` gives other clips of the same tasks, ``per_task`` of each of the ``tasks``,
    which are all six if not given.  If ``with_speech``, the first clip of each task has its
    narration as sound and is transcribed, if espeak-ng and moonshine-voice are installed.  With
    ``captions``, the narration stands in the pictures, and nowhere else.
    """
    folder = generated_folder(seed, per_task=per_task, tasks=tasks, captions=captions)
    if with_speech:
        folder = _folder_with_speech(folder, write_scripts(seed, per_task, tasks)[::per_task])
    name = ":".join(["generated", *["captions"] * captions, *[str(seed)] * bool(seed)])
    how = Own(listening=Listening(needed=not captions, uses_speech=not captions))
    dataset = open_folder(folder, how, name=name)
    task_of = {script.video: script.task for script in write_scripts(seed, per_task, tasks)}
    # The keysteps of a video do not determine its task if all of them are shared.
    videos = tuple(replace(video, task=task_of[video.id]) for video in dataset.videos)
    return replace(dataset, videos=videos)


def generated_folder(
    seed: int = 0,
    *,
    per_task: int = PER_TASK,
    tasks: Sequence[str] | None = None,
    captions: bool = False,
) -> Path:
    """Folder in the cache with the clips, ``steps.txt`` and ``truth.csv``, rendered if need be."""
    chosen = tuple(dict.fromkeys(tasks or TASKS))
    scripts = write_scripts(seed, per_task, chosen)
    numbers = "".join(str(list(TASKS).index(task)) for task in chosen)
    parent = cache_folder() / "generated"
    how = "-captions" if captions else ""
    folder = parent / f"v{VERSION}-tasks{numbers}-seed{seed}-of{per_task}{how}"
    if not is_whole(folder):

        def make(made: Path) -> None:
            _render_clips(scripts, made, partial(render, captions=True) if captions else render)
            _write_lists(scripts, chosen, made)

        _make_whole(folder, make)
    return folder


def _folder_with_speech(written: Path, scripts: Sequence[Script]) -> Path:
    """Folder with the same clips, the given ones with speech; its name includes the voice."""
    speaker = speaking.speaker()
    if speaker is None or find_spec("moonshine_voice") is None:
        missing = speaking.PROGRAM if speaker is None else "moonshine-voice"
        note(f"{missing} is not installed: clips have text tracks instead of speech")
        return written
    folder = written.with_name(f"{written.name}-{speaker}")
    if not is_whole(folder):

        def make(made: Path) -> None:
            shutil.copytree(written, made, dirs_exist_ok=True)
            for script in track(scripts, "synthesising speech"):
                name = f"{script.video}.mp4"
                speaking.give_voice(script, written / name, made / name)
            _list_files(made)

        _make_whole(folder, make)
    return folder


def write_scripts(
    seed: int = 0, per_task: int = PER_TASK, tasks: Sequence[str] | None = None
) -> tuple[Script, ...]:
    """Write the scripts of a corpus, without any picture."""
    if not isinstance(seed, int) or seed < 0:
        raise ConfigError(f"seed must be a whole number from 0 on, got {seed!r}")
    if not isinstance(per_task, int) or not 1 <= per_task <= 10_000:
        raise ConfigError(f"per_task must be between 1 and 10,000 clips, got {per_task!r}")
    for task in tasks or ():
        if task not in TASKS:
            raise ConfigError(f"task must be one of {', '.join(map(repr, TASKS))}, got {task!r}")
    return tuple(
        write_script(task, seed, number)
        for task in tasks or TASKS
        for number in range(1, per_task + 1)
    )


def is_whole(folder: Path) -> bool:
    """Check that a folder holds all that was rendered into it, unchanged."""
    try:
        listed = json.loads((folder / _LIST).read_bytes())
        if listed["version"] != VERSION:
            return False
        sums = {name: zlib.crc32((folder / name).read_bytes()) for name in listed["files"]}
        return bool(sums == listed["files"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _make_whole(folder: Path, make: Callable[[Path], None]) -> None:
    """Make a folder under another name, and rename it when all is there."""
    if find_spec("av") is None:
        raise MissingExtraError(
            "the generated corpus must be rendered, which needs the 'video' extra; "
            "run: pip install av"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        for left in folder.parent.glob(f".*{_PARTIAL}"):  # by processes killed long ago
            if left.stat().st_mtime < time.time() - _ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
        with TemporaryDirectory(
            prefix=f".{folder.name}.", suffix=_PARTIAL, dir=folder.parent
        ) as partial:
            made = Path(partial) / "made"
            made.mkdir()
            make(made)
            if folder.exists() and not is_whole(folder):  # it goes when the rest is removed
                folder.replace(Path(partial) / "damaged")
            try:
                made.replace(folder)
            except OSError:
                if not is_whole(folder):  # else another process was faster
                    raise
    except OSError as error:  # those of the video library are such, too
        raise DataError(
            f"{folder}: the generated corpus cannot be written: {error.strerror or error}; "
            f"set STEPGRAPH_CACHE to a folder with 50 MB to spare"
        ) from error


def _render_clips(
    scripts: Sequence[Script], folder: Path, render_one: Callable[[Script, Path], None]
) -> None:
    pool = ThreadPoolExecutor(_THREADS)
    try:
        with counting("rendering", len(scripts)) as done:
            for _ in pool.map(lambda one: render_one(one, folder / f"{one.video}.mp4"), scripts):
                done(1)
    finally:
        # After a failure, what has not begun is not begun.
        pool.shutdown(cancel_futures=True)


def _write_lists(scripts: Sequence[Script], tasks: Sequence[str], folder: Path) -> None:
    blocks = ["\n".join([f"# {task}", *(step.keystep for step in TASKS[task])]) for task in tasks]
    write_text(folder / VOCABULARY_FILES[0], "\n\n".join(blocks) + "\n")
    rows = [
        f"{script.video},{start:g},{end:g},{keystep}"
        for script in scripts
        for start, end, keystep in script.truth
    ]
    write_text(folder / TRUTH_FILE, "\n".join(["video,start,end,keystep", *rows]) + "\n")
    _list_files(folder)


def _list_files(folder: Path) -> None:
    listed: dict[str, Any] = {"format": "stepgraph-generated", "version": VERSION}
    listed["files"] = {
        path.name: zlib.crc32(path.read_bytes())
        for path in sorted(folder.iterdir())
        if path.name != _LIST
    }
    write_text(folder / _LIST, json.dumps(listed, indent=1) + "\n")
