"""Sources at addresses: read by ranges of bytes, and only where a user typed them."""

import sys

import fsspec
import pytest

from sharding import write_captions
from stepgraph.cli import main
from stepgraph.datasets import build_vocabulary, howto100m_captions, open_source
from stepgraph.encoders import EncoderOptions, load_encoder
from stepgraph.errors import ConfigError, DataError, MissingExtraError
from stepgraph.files.addresses import Address
from stepgraph.files.disk import reading
from stepgraph.graph.saving import save_graph
from stepgraph.pipeline import mine, shards
from stepgraph.pipeline.mining import MiningJob, mine_shards
from stepgraph.pipeline.shards import cut, in_processes
from stepgraph.vocabulary import read_vocabulary

pytestmark = pytest.mark.usefixtures("one_thread")
WORDS = EncoderOptions("sharding:make_words")
BUCKET = "memory://bucket/captions"
COLUMNS = "video_id,category_1,category_2,rank,task_id"


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    """The same captions on the disk and in memory."""
    monkeypatch.setattr(shards, "_LEAST", 1500)
    shards._OPENED.clear()
    write_captions(tmp_path / "captions")
    (tmp_path / "captions/task_ids.csv").write_text("7\tMake tea\n")
    listed = "".join(f"video-{number:03},a,b,1,7\n" for number in range(40))
    (tmp_path / "captions/HowTo100M_v1.csv").write_text(f"{COLUMNS}\n{listed}")
    system = fsspec.filesystem("memory")
    for path in (tmp_path / "captions").iterdir():
        system.pipe_file(f"/bucket/captions/{path.name}", path.read_bytes())
    yield tmp_path / "captions"
    system.rm("/bucket", recursive=True)


@pytest.mark.parametrize("place", ["memory://bucket/captions", "file://{}"])
def test_what_is_read_from_an_address_is_what_lies_there(bucket, place):
    address = open_source(f"howto100m:{place.format(bucket)}")
    disk = open_source(f"howto100m:{bucket}")

    assert [*address.videos] == [*disk.videos]
    assert {video.task for video in address.videos} == {"Make tea"}


def test_a_graph_of_an_address_is_that_of_the_disk(bucket, tmp_path):
    vocabulary, source = (
        read_vocabulary(bucket / "steps.txt"),
        "howto100m:memory://bucket/captions",
    )
    save_graph(
        mine(f"howto100m:{bucket}", vocabulary, encoder=load_encoder(WORDS)), tmp_path / "a"
    )
    job = MiningJob(source=source, vocabulary=vocabulary, encoder=WORDS)
    dataset = open_source(source)
    assert len(cut(dataset)) > 5

    save_graph(mine_shards(job, dataset, tmp_path / "b", in_processes(1)), tmp_path / "b")

    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_that_changes_has_another_stamp(bucket):
    before = open_source("howto100m:memory://bucket/captions").videos.stamp
    again = open_source("howto100m:memory://bucket/captions").videos.stamp
    path, system = "/bucket/captions/raw_caption.json", fsspec.filesystem("memory")
    system.pipe_file(path, system.cat_file(path))

    assert before == again
    assert open_source("howto100m:memory://bucket/captions").videos.stamp != before


def test_a_part_of_a_file_is_fetched_without_the_rest(bucket, monkeypatch):
    asked = []
    bytes_of = Address.bytes

    def counted(self, begin, end):
        asked.append((begin, end))
        return bytes_of(self, begin, end)

    monkeypatch.setattr(Address, "bytes", counted)
    monkeypatch.setattr(howto100m_captions, "_SURELY", 100)
    with reading(Address("memory://bucket/captions/raw_caption.json")) as file:
        file.seek(2000)
        assert file.read(10) == (bucket / "raw_caption.json").read_bytes()[2000:2010]
    assert asked[0][0] == 2000
    asked.clear()

    dataset = open_source("howto100m:memory://bucket/captions")
    asked.clear()
    [*dataset.videos.between(8000, 9000, dataset.problems)]

    assert min(begin for begin, _ in asked) > 7000


def test_tasks_are_read_from_an_address(bucket, tmp_path):
    articles = tmp_path / "articles.jsonl"
    articles.write_text('{"title": "Make tea", "steps": ["Boil water.", "Pour it."]}\n')
    for place in (bucket, "memory://bucket/captions"):
        found = build_vocabulary(f"howto100m:{place}", articles=articles, min_videos=1)
        assert found.keysteps == ("Boil water", "Pour it")


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("howto100m:memory://nothing", DataError, "memory://nothing: must contain raw_caption.js"),
        (
            "howto100m:s3://b/x",
            MissingExtraError,
            "s3://b/x/.*: needs a library for s3://; run",
        ),
        ("howto100m:gs://b/x", MissingExtraError, "run: pip install gcsfs"),
        (
            "howto100m:nonsense://b/x",
            ConfigError,
            "must be an address that fsspec supports, such as",
        ),
        (
            "crosstask:s3://b/x",
            ConfigError,
            "source must be on a local disk, got 'crosstask:s3://b/x'",
        ),
        (
            "manifest:s3://b/x",
            ConfigError,
            "source must be on a local disk, got 'manifest:s3://b/x'; ",
        ),
        (
            "memory://bucket/captions/raw_caption.json",
            ConfigError,
            "source must be on a local disk",
        ),
    ],
)
def test_what_cannot_be_opened_is_said_in_one_line(bucket, source, error, message, monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.setitem(sys.modules, "gcsfs", None)

    with pytest.raises(error, match=message):
        open_source(source)


def test_what_a_library_raises_is_said_in_one_line(bucket, monkeypatch):
    def refusing(*_, **__):
        raise RuntimeError("403\nForbidden")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "cat_file", refusing)
    with pytest.raises(DataError, match=r"must be readable, got RuntimeError: 403.Forbidden; che"):
        [*open_source("howto100m:memory://bucket/captions").videos]


def test_offline_nothing_is_fetched(bucket, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "")
    words = ["--vocabulary", str(bucket / "steps.txt"), "-o", str(tmp_path / "graph.json")]
    words += ["--encoder", WORDS.name]

    assert main(["--offline", "mine", "howto100m:s3://bucket/x", *words]) == 1
    assert "must be a path on this machine when offline" in capsys.readouterr().err
    assert main(["--offline", "mine", "howto100m:memory://bucket/captions", *words]) == 0


def test_a_manifest_names_no_address(bucket, tmp_path):
    said = "WEBVTT\n\n00:00.000 --> 00:04.000\nboil the water\n"
    fsspec.filesystem("memory").pipe_file("/bucket/said.vtt", said.encode())
    manifest = tmp_path / "videos.csv"
    manifest.write_text("id,transcript\na,memory://bucket/said.vtt\n")

    with pytest.raises(
        DataError, match=r"transcript must be a file, got .*, which does not exist"
    ):
        open_source(manifest)
