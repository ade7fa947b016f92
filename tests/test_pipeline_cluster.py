"""Mining on a cluster of several nodes: what dies in the middle changes nothing."""

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from sharding import write_captions
from stepgraph.cli import main
from stepgraph.datasets import open_source
from stepgraph.encoders import EncoderOptions, load_encoder
from stepgraph.encoders.encoding import encode_to
from stepgraph.encoders.stored_features import FeatureStore
from stepgraph.graph.saving import save_graph
from stepgraph.pipeline import mine, shards
from stepgraph.pipeline.encoding import EncodingJob, encode_shards
from stepgraph.pipeline.mining import MiningJob, mine_shards
from stepgraph.problems import Problems
from stepgraph.vocabulary import read_vocabulary

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra cluster")
WORDS = EncoderOptions("sharding:make_words")
HERE = Path(__file__).parent
SHARD = 700  # bytes: some twenty shards
# The command line with smaller shards.
DRIVER = (
    "import sys; from stepgraph.cli import main; from stepgraph.pipeline import shards; "
    f"shards._LEAST = {SHARD}; sys.exit(main(sys.argv[1:]))"
)


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    from ray.cluster_utils import Cluster

    # Tasks find the encoder by this; they say whom they encode, and take their time.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), *filter(None, sys.path)]))
    monkeypatch.setenv("SHARDING_LOG", str(tmp_path / "encoded.txt"))
    monkeypatch.setenv("SHARDING_SECONDS", "0.2")
    monkeypatch.setenv("RAY_DISABLE_IMPORT_WARNING", "1")
    # A node that is dead is missed after some seconds.
    soon = {"health_check_period_ms": 1000, "health_check_failure_threshold": 4}
    settings = soon | {"health_check_initial_delay_ms": 0}
    # Processes for people who look on, and for machines that are asked for: nobody does here.
    without = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
    head = {"num_cpus": 1, "_system_config": settings, **without}
    running = Cluster(initialize_head=True, head_node_args=head)
    yield running
    running.shutdown()


def plain(source, folder, path):
    graph = mine(source, read_vocabulary(folder / "steps.txt"), encoder=load_encoder(WORDS))
    save_graph(graph, path)
    return path.read_bytes()


def started(source, folder, output, address):
    words = [
        *("mine", source, "--vocabulary", str(folder / "steps.txt"), "-o", str(output)),
        *("--encoder", WORDS.name, "--cluster", address),
    ]
    with output.with_suffix(".out").open("w") as out, output.with_suffix(".err").open("w") as err:
        return subprocess.Popen([sys.executable, "-c", DRIVER, *words], stdout=out, stderr=err)


def finished(output):
    return {path.stem for path in output.with_name(f"{output.name}.shards").glob("0*.json")}


def wait_for(count, output, driver):
    for _ in range(3000):
        if len(finished(output)) >= count:
            return
        assert driver.poll() is None, output.with_suffix(".err").read_text()
        time.sleep(0.1)
    raise AssertionError(f"{finished(output)} after five minutes")


def test_nodes_and_drivers_may_die_and_shards_come_twice(cluster, tmp_path, monkeypatch):
    folder, output = tmp_path / "captions", tmp_path / "graph.json"
    source, encoded = write_captions(folder), tmp_path / "encoded.txt"
    doomed = cluster.add_node(num_cpus=1)
    driver = started(source, folder, output, cluster.address)
    wait_for(2, output, driver)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    done = finished(output)
    encoded.unlink()

    driver = started(source, folder, output, cluster.address)
    wait_for(len(done) + 3, output, driver)
    cluster.remove_node(doomed, allow_graceful=False)

    assert driver.wait(timeout=300) == 0, output.with_suffix(".err").read_text()
    assert output.with_suffix(".out").read_text() == (
        f"{output}: 6 keysteps, 36 transitions between them, mined from 40 videos\n"
    )
    again = encoded.read_text().split()
    monkeypatch.delenv("SHARDING_LOG")
    expected = plain(source, folder, tmp_path / "plain.json")
    assert output.read_bytes() == expected
    assert not finished(output)
    # What the first driver had kept was not mined again.
    assert 0 < len({*again}) < 40

    from stepgraph.pipeline.cluster import on_cluster

    def twice(job, work, asked):
        return on_cluster(cluster.address)(job, work, [*asked, *asked])

    monkeypatch.setattr(shards, "_LEAST", 8 * SHARD)
    vocabulary, dataset = read_vocabulary(folder / "steps.txt"), open_source(source)
    job = MiningJob(source=source, vocabulary=vocabulary, encoder=WORDS)
    graph = mine_shards(job, dataset, tmp_path / "twice.json", twice)
    save_graph(graph, tmp_path / "twice.json")
    assert (tmp_path / "twice.json").read_bytes() == expected

    # Features come from the cluster by the same way.
    encoder, features = load_encoder(WORDS), tmp_path / "features"
    encode_to(FeatureStore(tmp_path / "plain"), dataset.videos, encoder, Problems())
    encode_shards(
        EncodingJob(source=source, encoder=WORDS, folder=features), dataset, encoder, twice
    )
    assert contents(features) == contents(tmp_path / "plain")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_cluster_that_is_not_there_is_said(tmp_path, capsys):
    asked = ["mine", "demo", "-o", str(tmp_path / "graph.json"), "--cluster", "nowhere"]

    assert main(asked) == 1
    assert "cluster (--cluster) must be 'auto' or the address of" in capsys.readouterr().err
