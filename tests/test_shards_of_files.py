"""Labels and features made in shards: whoever makes them, the files are those of one process."""

import json
from dataclasses import replace
from functools import partial

import pytest

from sharding import write_captions
from stepgraph.cli import main
from stepgraph.datasets import open_source
from stepgraph.decoders import Argmax, PathSearch
from stepgraph.encoders import EncoderOptions, load_encoder
from stepgraph.encoders.encoding import encode_to
from stepgraph.encoders.stored_features import FeatureStore
from stepgraph.errors import DataError
from stepgraph.labelling.folders import label_source
from stepgraph.labelling.shards import LabelingJob, label_shards
from stepgraph.pipeline import mine, shards
from stepgraph.pipeline.encoding import EncodingJob, encode_shards
from stepgraph.pipeline.shards import cut, in_processes
from stepgraph.problems import Problems
from stepgraph.vocabulary import read_vocabulary

pytestmark = pytest.mark.usefixtures("one_thread")
ALONE = in_processes(1)
WORDS = EncoderOptions("sharding:make_words")


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture
def source(tmp_path, monkeypatch):
    """Captions in some ten shards: one video stands twice, one is silent."""
    monkeypatch.setattr(shards, "_LEAST", 1500)
    shards._OPENED.clear()
    source = write_captions(tmp_path / "captions", twice=(3,))
    path = tmp_path / "captions" / "raw_caption.json"
    silent = json.dumps({"start": [], "end": [], "text": []})
    path.write_text(f'{path.read_text()[:-1]},\n"silent": {silent}}}')
    return source


@pytest.fixture
def labelling(source, tmp_path):
    """A job, what does it into a folder, and what one process makes."""
    vocabulary = read_vocabulary(tmp_path / "captions" / "steps.txt")
    graph = mine("demo", vocabulary, encoder=load_encoder(WORDS))
    job = LabelingJob(source=source, encoder=WORDS, graph=graph, decoder=Argmax())

    def run(folder, engine=ALONE, dataset=None, job=job):
        dataset, problems = dataset or open_source(source), Problems()
        label_shards(job, dataset, folder, engine, problems=problems)
        return contents(folder)

    encoder, plain = load_encoder(WORDS), tmp_path / "plain"
    videos, problems = open_source(source).videos, Problems()
    label_source(videos, graph, plain, decoder=Argmax(), encoder=encoder, problems=problems)
    return job, run, contents(plain)


@pytest.fixture
def encoding(source, tmp_path):
    job = EncodingJob(source=source, encoder=WORDS, folder=tmp_path)

    def run(folder, engine=ALONE, dataset=None, job=job):
        dataset, job = dataset or open_source(source), replace(job, folder=folder)
        encode_shards(job, dataset, load_encoder(WORDS), engine)
        return contents(folder)

    plain = FeatureStore(tmp_path / "plain")
    encode_to(plain, open_source(source).videos, load_encoder(WORDS), Problems())
    return job, run, contents(plain.path)


@pytest.fixture(params=["labelling", "encoding"])
def either(request):
    return request.getfixturevalue(request.param)


def test_the_files_of_shards_are_those_of_one_process(either, source, tmp_path):
    _, run, plain = either
    dataset = open_source(source)

    assert len(cut(dataset)) > 5
    assert run(tmp_path / "made", dataset=dataset) == plain
    assert dataset.problems.counts["duplicate video"] == 1
    # Once more, where all is there.
    assert run(tmp_path / "made") == plain


def test_shards_may_come_in_any_order_and_twice(either, tmp_path):
    _, run, plain = either

    def twice_and_backwards(job, work, asked):
        for one in [*reversed(asked), *asked]:
            yield work(job, *one)

    assert run(tmp_path / "made", twice_and_backwards) == plain


class Stopped(Exception):
    pass


def stopping(after, job, work, asked):
    for one in asked[:after]:
        yield work(job, *one)
    raise Stopped


def test_an_interrupted_run_goes_on_where_it_was(either, tmp_path):
    _, run, plain = either
    folder, asked_for = tmp_path / "made", []
    with pytest.raises(Stopped):
        run(folder, partial(stopping, 4))

    def going_on(job, work, asked):
        asked_for.extend(piece.number for piece, _ in asked)
        return ALONE(job, work, asked)

    assert run(folder, going_on) == plain
    assert asked_for[0] == 4


def test_shards_of_another_decoder_are_not_put_together(labelling, tmp_path):
    job, run, plain = labelling
    other = replace(job, decoder=PathSearch(threshold=0.9))
    with pytest.raises(Stopped):
        run(tmp_path / "made", partial(stopping, 4), job=other)

    assert run(tmp_path / "made") == plain


def test_labels_of_another_decoder_are_refused_before_the_work(labelling, tmp_path):
    job, run, plain = labelling
    run(tmp_path / "made")
    other = replace(job, decoder=PathSearch(threshold=0.9))

    with pytest.raises(DataError, match="must hold labels made with decoder"):
        run(tmp_path / "made", partial(stopping, 0), job=other)
    assert contents(tmp_path / "made") == plain


def test_parts_are_closed_across_shards(labelling, source, tmp_path):
    job, _, _ = labelling
    how = {"part_size": 300, "problems": Problems()}
    label_shards(job, open_source(source), tmp_path / "made", ALONE, **how)

    rows = [
        one["rows"] for one in json.loads((tmp_path / "made/labels.json").read_text())["shards"]
    ]
    assert rows == [315, 324, 315, 324, 144]


def test_features_that_are_there_are_not_made_again(encoding, source, tmp_path):
    job, _, plain = encoding
    store = FeatureStore(tmp_path / "made")
    encode_to(store, [*open_source(source).videos][:30], load_encoder(WORDS), Problems())
    before = (tmp_path / "made/video-007.npz").stat().st_mtime_ns

    dataset, job = open_source(source), replace(job, folder=tmp_path / "made")
    done = encode_shards(job, dataset, load_encoder(WORDS), ALONE)

    assert contents(tmp_path / "made") == plain
    assert (done.written, done.skipped, done.rows) == (11, 30, 100)
    assert (tmp_path / "made/video-007.npz").stat().st_mtime_ns == before


def test_a_run_killed_while_files_are_put_in_place_ends_like_any_other(
    encoding, tmp_path, monkeypatch
):
    _, run, plain = encoding
    taken = shards.Shards.in_order

    def dying(self):
        for number, found in enumerate(taken(self)):
            yield found
            if number == 3:
                raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(shards.Shards, "in_order", dying)
        with pytest.raises(Stopped):
            run(tmp_path / "made")

    assert run(tmp_path / "made") == plain


def test_workers_on_the_command_line_write_the_same_files(source, tmp_path, capsys, monkeypatch):
    steps, graph = str(tmp_path / "captions/steps.txt"), str(tmp_path / "graph.json")
    words = ["--encoder", WORDS.name]
    assert main(["mine", source, "--vocabulary", steps, "-o", graph, *words]) == 0
    label, encode = ["label", source, "--graph", graph, *words], ["encode", source, *words]
    for name, more in (("one", []), ("two", ["--workers", "2"])):
        assert main([*label, "-o", str(tmp_path / "labels" / name), *more]) == 0
    for name, more in (("one", []), ("two", ["--workers", "1"])):
        assert main([*encode, "-o", str(tmp_path / "features" / name), *more]) == 0

    for made in (tmp_path / "labels", tmp_path / "features"):
        assert contents(made / "one") == contents(made / "two")
    assert capsys.readouterr().out.count("41 videos encoded (420 rows") == 2
