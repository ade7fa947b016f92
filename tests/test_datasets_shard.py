"""Parts of a data set: every video in exactly one, whatever else there is."""

import pytest

from stepgraph.datasets import Shard, open_source
from stepgraph.errors import ConfigError, DataError
from stepgraph.graph import TaskGraph
from stepgraph.pipeline import mine


def test_shards_are_all_videos_once_each_with_its_truth():
    whole = open_source("demo")

    parts = [open_source("demo", shard=Shard(part, 2)) for part in (1, 2)]

    ids = [[video.id for video in part.videos] for part in parts]
    assert sorted([*ids[0], *ids[1]]) == sorted(video.id for video in whole.videos)
    assert [sorted(part.truth) for part in parts] == ids


def test_a_shard_without_videos_is_refused(omelette_folder):
    with pytest.raises(DataError, match=r"^shard 1/500 of .* must hold videos, got none; use f"):
        open_source(omelette_folder, shard=Shard(1, 500))


def test_the_shard_of_a_video_depends_on_its_id_alone():
    shards = [Shard(part, 5) for part in range(1, 6)]
    ids = [f"video{number}" for number in range(1000)]

    for video in ids:
        assert sum(video in shard for shard in shards) == 1
    sizes = [sum(video in shard for video in ids) for shard in shards]
    assert min(sizes) > 150
    assert ("video7" in Shard(1, 5), "video7" in Shard(4, 5)) == (False, True)
    assert sum("\ud800" in shard for shard in shards) == 1


@pytest.mark.parametrize("text", ["0/2", "3/2", "1/0", "-1/2", "1", "", "a/b", "1/2/3", "1.5/2"])
def test_a_shard_that_cannot_be_is_refused(text):
    with pytest.raises(ConfigError, match=r"^shard must be I/N with I from 1 to N, .*, got '"):
        Shard.parse(text)
    assert str(Shard.parse(" 2 /8")) == "2/8"


def test_graphs_of_all_shards_merged_are_the_graph_of_one_pass():
    whole = mine(open_source("demo"))
    parts = [mine(open_source("demo", shard=Shard(part, 3))) for part in (1, 2, 3)]

    merged: TaskGraph = parts[0].merge(parts[1]).merge(parts[2])

    assert (merged.counts != whole.counts).nnz == 0
    assert sorted(merged.mined_on) == sorted(whole.mined_on)
