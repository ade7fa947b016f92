"""What is read while it grows, and what people did: seeds, and the functions that read one input.

As in :mod:`fuzz.readers`: finished shards of a graph, executions, lines of a transcript and sound
as they come.
"""

import io
import shutil
import wave
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np

import stepgraph as sg
from fuzz.binary_seeds import made
from fuzz.own_seeds import ENCODER
from fuzz.readers import check_problems, command
from fuzz.text_seeds import as_bytes, folders, srt, vtt
from stepgraph.core import LONGEST, Sentence
from stepgraph.encoders import EncoderOptions
from stepgraph.ingest.speech import RATE
from stepgraph.pipeline import shards
from stepgraph.pipeline.mining import MiningJob, mine_shards
from stepgraph.problems import Problems


def _job(folder):
    """Two videos of one's own, each a shard."""
    for name, content in folders()[0].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    vocabulary = sg.read_vocabulary(folder / "steps.txt")
    encoder = EncoderOptions(name=ENCODER)
    return MiningJob(source=str(folder), vocabulary=vocabulary, encoder=encoder)


@contextmanager
def _mining(folder):
    """A job of which each video is a shard, and its data set."""
    job = _job(folder)
    shards._OPENED.clear()
    with mock.patch.object(shards, "_VIDEOS", 1):
        yield job, sg.open_source(job.source)


def finished_shards():
    """What lies beside a graph while it is mined."""

    def make(folder):
        with _mining(folder / "talks") as (job, dataset):
            kept = shards.Shards(folder / "graph.json.shards", job, dataset)
            for piece in kept.pieces:
                kept.keep(shards.make_piece(job, piece))

    found = {Path(name).name: one for name, one in made(make).items() if ".shards" in name}
    del found["made-from.json"]  # who runs it again compares it as a whole
    return [found]


def read_shards(path, out):
    """Go on with a job of which damaged shards are there."""
    with _mining(out / "talks") as (job, dataset):
        target = out / "graph.json"
        folder = shards.Shards(out / "graph.json.shards", job, dataset).folder
        for file in path.iterdir():
            shutil.copy(file, folder)
        graph = mine_shards(job, dataset, target, shards.in_processes(1))
    sg.save(graph, target)
    assert not folder.exists()
    assert (sg.load(target).counts != graph.counts).nnz == 0
    check_problems(dataset.problems)
    return graph


def executions():
    """Who did what, with a true order."""
    rows = (
        "execution,task,split,step,mistake",
        *("1,Make tea,train,boil water,0", "1,Make tea,train,add leaves,0"),
        *("2,Make tea,train,add leaves,1", "2,Make tea,train,boil water,0"),
        *("3,Make tea,test,boil water,", "3,Make tea,test,pour,false", "4,Make soup,test,,"),
    )
    listed = {"steps": ["START", "boil water", "Add  leaves", "END"]}
    listed["edges"] = [["START", "boil water"], ["boil water", "Add  leaves"]]
    keyed = {"steps": {"0": "boil water", "1": "pour"}, "edges": [[0, 1]]}
    table = "\n".join(rows).encode()
    return [
        {"executions.csv": table, "graphs/Make tea.json": as_bytes(listed)},
        {"executions.csv": table, "graphs/make_tea.json": as_bytes(keyed)},
        {"executions.csv": b"step,execution\nboil water,1\npour,1\n"},
    ]


def read_executions(path, out):
    from stepgraph.assistant.executions import read_executions, write_executions

    found = read_executions(path)
    check_problems(found.problems)
    assert all(len(one.steps) == len(one.mistakes) for one in found.done)
    again = read_executions(write_executions(found.done, out))
    assert sorted(again.done, key=repr) == sorted(found.done, key=repr)
    steps = [step for one in found.done for step in one.steps] or ["boil water"]
    source, done = f"executions:{path}", [f"--done={step}" for step in steps[:2]]
    for verb in ("next", "missing", "mistakes"):
        command("ask", verb, source, *done)
    command("ask", "plan", source, f"--from={steps[0]}", f"--to={steps[-1]}")
    return found


def lines():
    """Lines as they come: subtitles, times before what is said, or nothing but words."""
    timed = "0.0 boil the water\n[0:12] pour it\n1:00:02.5 drink it\nand wait\n"
    texts = (srt(), vtt(), timed, "boil the water\n7\npour it\n")
    return [{"said.txt": text.encode()} for text in texts]


def read_lines(path, out):
    from stepgraph.assistant.live_reading import ArrivedSentence, LineParser, arriving, read_live

    problems = Problems()
    data, before = path.read_bytes(), -1.0
    for one in read_live(arriving(io.BytesIO(data)), LineParser("said.txt", problems)):
        if not isinstance(one, ArrivedSentence):
            continue
        start, end, text = one.sentence
        assert before <= start <= end <= start + LONGEST, (before, start, end)
        assert one.now >= start
        assert text.strip()
        before = start
    check_problems(problems)
    if before < 0:
        raise sg.DataError("lines must say something, got nothing")
    return before


def sound():
    """Half a second of noise, one of silence, and again, as a WAVE file and as samples."""
    noise = np.random.default_rng(0).integers(-9000, 9000, RATE // 2).astype("<i2").tobytes()
    samples = 3 * noise + bytes(2 * RATE) + noise

    def as_wave():
        file = io.BytesIO()
        with wave.open(file, "wb") as written:
            written.setnchannels(1)
            written.setsampwidth(2)
            written.setframerate(RATE)
            written.writeframes(samples)
        return file.getvalue()

    return [{"talk.wav": as_wave()}, {"talk.raw": samples[: RATE // 2]}]


def read_sound(path, out):
    from stepgraph.assistant import live_sound
    from stepgraph.assistant.live_reading import ArrivedSentence

    def hear(at, piece):
        assert np.isfinite(piece).all()
        assert np.abs(piece).max(initial=0.0) <= 1
        return (Sentence(at, at + len(piece) / RATE, "boil it"),)

    last = 0.0
    with mock.patch.object(live_sound, "hear_piece", hear), path.open("rb") as stream:
        for one in live_sound.listen_live(stream, path.name):
            now = one.now if isinstance(one, ArrivedSentence) else one
            assert last <= now + 1e-6, (last, now)
            last = now
    assert last <= path.stat().st_size / RATE / 2 + 1e-6
    return last
