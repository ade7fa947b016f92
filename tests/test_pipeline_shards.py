"""Mining in shards: whoever mines them, however often and in whatever order, the graph is one."""

import json
import sys
from dataclasses import replace
from functools import partial

import pytest

from sharding import write_captions
from stepgraph.cli import main
from stepgraph.datasets import open_source
from stepgraph.encoders import EncoderOptions, load_encoder
from stepgraph.errors import DataError
from stepgraph.graph.saving import save_graph
from stepgraph.pipeline import mine, open_scorer, shards
from stepgraph.pipeline.mining import MiningJob, mine_shards
from stepgraph.pipeline.shards import Piece, cut, in_processes
from stepgraph.vocabulary import read_vocabulary

pytestmark = pytest.mark.usefixtures("one_thread")
ALONE = in_processes(1)
WORDS = EncoderOptions("sharding:make_words")


@pytest.fixture
def captions(tmp_path, monkeypatch):
    """A job of some ten shards, and the bytes of the graph that one process mines."""
    monkeypatch.setattr(shards, "_LEAST", 1500)
    source = write_captions(tmp_path / "captions", twice=(3,))
    vocabulary = read_vocabulary(tmp_path / "captions" / "steps.txt")
    plain = mine(source, vocabulary, encoder=load_encoder(WORDS))
    job = MiningJob(source=source, vocabulary=vocabulary, encoder=WORDS)
    return job, saved(plain, tmp_path / "plain.json")


def saved(graph, path):
    save_graph(graph, path)
    return path.read_bytes()


def mined(job, path, engine=ALONE, dataset=None):
    graph = mine_shards(job, dataset or open_source(job.source), path, engine)
    assert not path.with_name(f"{path.name}.shards").exists()
    return saved(graph, path)


def test_shards_of_a_source_meet_and_cover_it(captions):
    job, _ = captions
    pieces = cut(open_source(job.source))

    assert len(pieces) > 5
    assert [piece.number for piece in pieces] == [*range(len(pieces))]
    assert [piece.begin for piece in pieces] == [0, *(piece.end for piece in pieces[:-1])]
    assert pieces[-1].end == open_source(job.source).videos.size


def test_the_graph_of_shards_is_that_of_one_process(captions, tmp_path):
    job, plain = captions
    dataset = open_source(job.source)

    assert mined(job, tmp_path / "graph.json", dataset=dataset) == plain
    # One video stands twice, in different shards: it counts once, and is said.
    assert dataset.problems.counts == {"duplicate video": 1}


def test_so_is_that_of_the_demo_with_its_words(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "_VIDEOS", 7)
    demo = open_source("demo")
    plain = mine("demo")

    assert plain.parameters.classifiers
    job = MiningJob(source="demo", vocabulary=demo.vocabulary)
    assert mined(job, tmp_path / "graph.json") == saved(plain, tmp_path / "plain.json")


def test_shards_may_come_in_any_order_and_twice(captions, tmp_path):
    job, plain = captions

    def twice_and_backwards(job, work, asked):
        for one in [*reversed(asked), *asked]:
            yield work(job, *one)

    assert mined(job, tmp_path / "graph.json", twice_and_backwards) == plain


class Stopped(Exception):
    pass


def stopping(after, job, work, asked):
    for one in asked[:after]:
        yield work(job, *one)
    raise Stopped


def test_an_interrupted_run_goes_on_where_it_was(captions, tmp_path):
    job, plain = captions
    path, asked_for = tmp_path / "graph.json", []
    with pytest.raises(Stopped):
        mined(job, path, partial(stopping, 4))

    def going_on(job, work, asked):
        asked_for.extend(piece.number for piece, _ in asked)
        return ALONE(job, work, asked)

    assert not path.exists()
    assert mined(job, path, going_on) == plain
    assert asked_for == [*range(4, len(cut(open_source(job.source))))]


def test_shards_of_something_else_are_not_added_up(captions, tmp_path):
    job, plain = captions
    path = tmp_path / "graph.json"
    other = replace(job, mining={"min_score": 0.9})
    with pytest.raises(Stopped):
        mined(other, path, partial(stopping, 4))

    assert mined(job, path) == plain


@pytest.mark.parametrize("name", ["00001.json", "00001.sample"])
@pytest.mark.parametrize("damage", [b"", b"\xff\n{", None, "gone"])
def test_a_damaged_shard_is_mined_anew(captions, tmp_path, name, damage):
    job, plain = captions
    path = tmp_path / "graph.json"
    with pytest.raises(Stopped):
        mined(job, path, partial(stopping, 4))
    file = path.with_name("graph.json.shards") / name
    if damage == "gone":
        file.unlink()
    else:  # of None one number is another
        whole = file.read_bytes()
        file.write_bytes(whole.replace(b"2", b"3", 1) if damage is None else damage)

    assert mined(job, path) == plain


def test_a_source_that_changed_is_mined_anew(captions, tmp_path):
    job, _ = captions
    path = tmp_path / "graph.json"
    with pytest.raises(Stopped):
        mined(job, path, partial(stopping, 4))
    write_captions(tmp_path / "captions", 30)
    shards._OPENED.clear()

    found = json.loads(mined(job, path))

    assert found["mined_on"] == [f"video-{number:03}" for number in range(30)]


def test_a_source_without_videos_is_an_error(captions, tmp_path):
    job, _ = captions
    (tmp_path / "captions" / "raw_caption.json").write_text("{}")
    shards._OPENED.clear()

    with pytest.raises(DataError, match="howto100m: must hold a video that can be mined, got no"):
        mined(job, tmp_path / "graph.json")


def test_a_large_source_does_not_fill_the_cache():
    encoder = open_scorer()
    encoder.remembers = False
    text = "a sentence that nobody else encodes, about shards of a corpus"
    encoder.encode_texts([text])

    assert encoder._cache.load([text]) == {}


def test_workers_on_the_command_line_write_the_same_file(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(shards, "_VIDEOS", 12)
    for name, more in (("one", []), ("two", ["--workers", "2"])):
        assert main(["mine", "demo", "-o", str(tmp_path / name), *more]) == 0

    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert "36 videos" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--workers", "0"], "--workers must be at least 1, got 0"),
        (["--workers", "2", "--cluster", "auto"], "--workers and --cluster are mutually excl"),
        (["--cluster", "auto"], "a cluster needs the 'cluster' extra; run: pip install 'stepgr"),
    ],
)
def test_what_cannot_be_shared_is_said(more, message, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)

    assert main(["mine", "demo", "-o", str(tmp_path / "graph.json"), *more]) == 1
    assert message in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


def test_pieces_of_ones_own_videos_are_counted(monkeypatch):
    monkeypatch.setattr(shards, "_VIDEOS", 20)

    assert cut(open_source("demo")) == [Piece(0, 0, 20), Piece(1, 20, 36)]


@pytest.mark.parametrize(("kept", "again"), [(10**4, 0), (30, None), (0, 40)])
def test_what_was_encoded_is_encoded_once_more_only_where_it_was_not_kept(
    captions, tmp_path, monkeypatch, kept, again
):
    from stepgraph.pipeline import mining

    job, _ = captions
    job = replace(job, encoder=EncoderOptions("sharding:make_sentences"))
    plain = mine(job.source, job.vocabulary, encoder=load_encoder(job.encoder))
    assert plain.parameters.classifiers
    monkeypatch.setattr(mining, "_STORED", kept)
    heard = []

    def listening(job, work, asked):
        for found in ALONE(job, work, asked):
            heard.extend(found if work is mining.encode_piece else ())
            yield found

    shards._OPENED.clear()
    assert mined(job, tmp_path / "graph.json", listening) == saved(plain, tmp_path / "plain.json")
    assert len(heard) == again or (again is None and 0 < len(heard) < 40)
