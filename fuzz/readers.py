"""The functions that read one input: its path (a file, or the folder of several), and a folder.

Only in that folder they may write.  Each returns a value or raises a StepgraphError; anything else
is a find, and so is an ``assert`` that fails.
"""

import io
import math
import os
import shutil
from contextlib import nullcontext, redirect_stderr, redirect_stdout, suppress
from unittest import mock

import numpy as np

import stepgraph as sg
from fuzz.own_seeds import ENCODER, VOCABULARY, clip_options
from fuzz.printed import require_error, require_printable
from stepgraph.cli import main
from stepgraph.core import LONGEST, is_unicode
from stepgraph.problems import Problems


def read_transcript(path, out):
    problems = Problems()
    sentences = sg.read_transcript(path, problems=problems)
    _check_sentences(sentences)
    check_problems(problems)
    return sentences


def read_video(path, out):
    from stepgraph.ingest import Listening

    problems = Problems()
    video = sg.open_video(
        path, listening=Listening(needed=False, uses_speech=False), problems=problems
    )
    check_video(video)
    check_problems(problems)
    return video


def read_frames(path, out):
    from stepgraph.ingest.frames import ClipOptions, read_clips

    options = ClipOptions(frames=2, window=1.0, height=16, width=16)
    count = 0
    for clip in read_clips(path, options):
        assert clip.frames.shape == (2, 16, 16, 3)
        count += 1
        if count > 100:  # a video of a week is read, but not here
            break
    return count


def read_steps(path, out):
    vocabulary = sg.read_vocabulary(path)
    sg.save(vocabulary, out / "vocabulary.json")
    again = sg.load(out / "vocabulary.json")
    assert (again, again.notes) == (vocabulary, vocabulary.notes)
    command("vocabulary", path, "-o", out / "again.json")
    return vocabulary


def read_saved(path, out):
    artefact = sg.load(path)
    again = out / path.name
    sg.save(artefact, again)
    assert type(sg.load(again)) is type(artefact)
    if isinstance(artefact, sg.Labels):
        assert all(segment.end > segment.start for segment in artefact.segments())
    return artefact


def read_graph(path, out):
    graph = sg.load(path)
    if isinstance(graph, sg.TaskGraph):
        first, second = graph.vocabulary.keysteps[:2]
        command("graph", "show", path)
        command("graph", "next", path, "--", first)
        command("graph", "path", path, "--", first, second)
        command("graph", "relation", path, "--", first, second)
        sg.save(graph, out / "again.json")
        again = sg.load(out / "again.json")
        assert (again.counts != graph.counts).nnz == 0
        assert again.vocabulary.notes == graph.vocabulary.notes
    return graph


def read_results(path, out):
    from stepgraph.experiments.setting import ResultStore

    return ResultStore(path)


def read_annotations(path, out):
    from stepgraph.export.corrections import read_corrections, to_truth

    steps = read_corrections(path)
    assert all(0 <= one.start < one.end <= LONGEST and one.keystep for one in steps)
    (out / "truth.csv").write_text(to_truth(steps), "utf-8", errors="replace")
    return steps


def read_source(prefix=""):
    def read(path, out):
        found = None
        names = ("videos.jsonl", "videos.csv") if prefix == "manifest:" else ()
        place = next((path / name for name in names if (path / name).is_file()), path)
        for strict in (True, None, False):
            # What stops a strict reader is left out by another.
            with suppress(sg.StepgraphError) if strict is not False else nullcontext():
                found = sg.open_source(f"{prefix}{place}", strict=strict)
                for video in found.videos:
                    check_video(video)
                check_problems(found.problems)
        return found

    return read


def read_howto100m(path, out):
    found = read_source("howto100m:")(path, out)
    if (path / "wikihow.jsonl").is_file():
        given = ("--articles", path / "wikihow.jsonl", "--min-videos", "1")
        command("vocabulary", f"howto100m:{path}", *given)
    command("datasets", path)
    return found


def read_articles(path, out):
    from stepgraph.vocabulary import read_articles

    problems = Problems()
    found = list(read_articles(path, problems=problems))
    assert all(one.title and one.steps and is_unicode("".join(one.steps)) for one in found)
    check_problems(problems)
    command("vocabulary", f"articles:{path}", "-o", out / "vocabulary.json")
    return found


def read_arrays(path, out):
    from stepgraph.encoders.stored_features import StoredEncoder
    from stepgraph.scoring import StoredScores

    videos = [sg.Video("v", 6.0), sg.Video("w", 2.0)]
    place = next(iter(sorted(path.glob("all.*"))), path)
    problems = Problems()
    with suppress(sg.StepgraphError):
        for _, scores in StoredScores(place).read_each(videos, VOCABULARY, problems=problems):
            assert np.isfinite(scores.values).all()
    encoder = StoredEncoder(place, problems=problems)
    for features in encoder.encode_videos(videos):
        assert np.isfinite(features.vectors).all()
    check_problems(problems)
    if list(path.glob("keysteps.*")):  # else a model would be loaded, if the folder names one
        encoder.encode_keysteps(VOCABULARY)
    return encoder


def read_labels(path, out):
    from stepgraph.labelling.folders import read_labels

    return [one for one in read_labels(path) if len(one)]


def read_cache(path, out):
    from stepgraph.encoders.cache import EmbeddingCache

    cache = EmbeddingCache("model", out)
    cache.path.parent.mkdir()
    shutil.copy(path, cache.path)  # one that is damaged is set aside, which moves the file
    found = cache.load(["boil", "pour", "other"])
    cache.store(["other"], np.ones((1, 3), np.float32))
    assert all(vector.dtype == np.float32 for vector in found.values())
    return found


def read_heard(path, out):
    from stepgraph.ingest import speech

    problems = Problems()
    (talk := out / "talk.wav").write_bytes(b"never opened")
    with mock.patch.dict(os.environ, STEPGRAPH_CACHE=str(out)):
        place = speech._cache_path(talk, None)
        place.parent.mkdir(parents=True)
        shutil.copy(path, place)
        if speech.recall(talk) is None:
            raise sg.DataError("what was heard must be whole, got damage; listen again")
        heard = speech.hear(talk, problems=problems)
    _check_sentences(heard.sentences)
    assert 0 <= heard.end <= LONGEST
    check_problems(problems)
    speech.to_srt(heard.sentences).encode()
    return heard


def read_screen(path, out):
    from stepgraph.ingest import screen

    (talk := out / "talk.mp4").write_bytes(b"never opened")
    with mock.patch.dict(os.environ, STEPGRAPH_CACHE=str(out)):
        place = screen._cache_path(talk)
        place.parent.mkdir(parents=True)
        shutil.copy(path, place)
        found = screen.recall(talk)
    if found is None:
        raise sg.DataError("what was read must be whole, got damage; read it again")
    _check_sentences(found)
    return found


def read_checkpoint(path, out):
    from stepgraph.networks.checkpoints import load_checkpoint
    from stepgraph.networks.weights import read_weights

    weights = read_weights(path)
    if path.suffix == ".safetensors":
        load_checkpoint(path)
    return weights


def read_state(path, out):
    from stepgraph.training.state import position_of, read_state, require_same

    state = read_state(path)
    with suppress(sg.ConfigError):
        require_same(path, state, {"seed": 0})
    return position_of(path, state)


def read_model(path, out):
    encoder = sg.load_encoder(f"timesformer:{path}")
    return list(encoder.encode_videos([sg.Video("talk", 2.0, path=path / "talk.mp4")]))


def read_stored_clips(path, out):
    from stepgraph.training.clip_store import ClipStore

    shutil.copytree(path, out / "clips")  # a store without a header gets one
    if (video := out / "clips" / "talk.mp4").is_file():
        os.utime(video, (1, 1))
    store = ClipStore(out / "clips", clip_options())
    count = store.count("talk", video)
    for clip in range(min(count or 0, 5)):
        assert store.read("talk", clip).shape == (2, 4, 4, 3)
    return count


def run_commands(path, out):
    """Mine, recognise and evaluate from the command line, as a user does with files of others."""
    source = f"howto100m:{path}" if (path / "raw_caption.json").is_file() else path
    mined = out / "graph.json"
    steps = path / "steps.txt"
    command("mine", source, "--vocabulary", steps, "--encoder", ENCODER, "-o", mined)
    command("mine", source, "--encoder", ENCODER, "-o", mined, "--skip-bad", "--json")
    graph = path / "graph.json" if (path / "graph.json").is_file() else mined
    options = ("--encoder", ENCODER, "--skip-bad", "-o", out / "keysteps")
    code = command("recognize", source, "--graph", graph, *options)
    if (path / "truth.csv").is_file():
        report = ("--report", out / "report.html")
        command("evaluate", source, "--encoder", ENCODER, "--skip-bad", *report)
    assert not list(out.rglob("*.partial")), "left half a file"
    return code


def command(*arguments):
    """Run the command line; its answer and its errors must be lines that a terminal can show."""
    answer = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    try:
        with redirect_stdout(answer), redirect_stderr(said):
            code = main([str(argument) for argument in arguments])
    except SystemExit as error:
        raise AssertionError(f"stopped with {error.code} instead of an error") from error
    for stream in (answer, said):
        stream.flush()
        stream.seek(0)
    lines = said.read().splitlines()
    assert code in (0, 1)
    assert all(line.startswith("stepgraph: ") for line in lines), lines[:3]
    assert code == 0 or any(line.startswith("stepgraph: error: ") for line in lines)
    for line in (*lines, *answer.read().split("\n")):
        require_printable(line)
    return code


def check_video(video):
    assert 0 <= video.duration <= LONGEST
    assert is_unicode(video.id)
    _check_sentences(video.transcript)


def _check_sentences(sentences):
    last = 0.0
    for start, end, text in sentences:
        assert math.isfinite(end), (start, end)
        assert last <= start <= end <= LONGEST, (last, start, end)
        assert text.strip()
        last = start


def check_problems(problems):
    if problems:
        require_error(problems.summary())
