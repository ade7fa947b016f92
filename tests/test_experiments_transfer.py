"""From video files to a downstream table."""

from dataclasses import replace

import pytest

from stepgraph.core import Dataset, Video
from stepgraph.datasets import open_source
from stepgraph.errors import DataError
from stepgraph.experiments import transfer
from stepgraph.experiments.setting import Options
from stepgraph.experiments.table import HEADS, PROBES
from stepgraph.experiments.transfer import divide, make_transfer_table
from stepgraph.networks.timesformer import TimeSformerOptions
from stepgraph.training.schedule import Phase, Running, TrainingOptions
from test_cli_video import ORDER, STEPS, paint

pytest.importorskip("av")
pytestmark = pytest.mark.usefixtures("one_thread")

WORDS = ("I paint it red", "now paint it green", "at last paint it blue")


@pytest.fixture(scope="module")
def painted(tmp_path_factory):
    """Ten painted clips with words and truth, a folder like anybody's."""
    folder = tmp_path_factory.mktemp("painted")
    (folder / "steps.txt").write_text(STEPS)
    rows = []
    for number in range(10):
        paint(folder / f"v{number}.mp4", said=WORDS)
        rows += [f"v{number},{2 * at},{2 * at + 2},paint it {c}" for at, c in enumerate(ORDER)]
    (folder / "truth.csv").write_text("\n".join(["video,start,end,keystep", *rows]) + "\n")
    return open_source(folder)


@pytest.fixture
def quick(monkeypatch):
    """A model and a training that take a second."""
    monkeypatch.setattr(transfer, "SEEDS", 2)
    monkeypatch.setattr(
        transfer,
        "small_model",
        lambda classes: TimeSformerOptions(
            classes, frames=2, size=16, patch=8, width=16, depth=1, heads=1
        ),
    )
    monkeypatch.setattr(
        transfer,
        "small_training",
        lambda seed, clips: TrainingOptions(
            phases=(Phase("adamw", 2, 1e-3),),
            batch=8,
            seed=seed,
            running=Running(device="cpu", store=clips, logs=False, workers=0),
        ),
    )


def test_a_data_set_is_divided_into_three_parts_without_a_common_video(painted):
    corpus = divide(painted, seed=0)

    parts = [
        {video.id for video in part.videos}
        for part in (corpus.pretraining, corpus.train, corpus.test)
    ]
    assert [len(part) for part in parts] == [5, 3, 2]
    assert set.union(*parts) == {video.id for video in painted.videos}


def test_videos_without_a_file_cannot_be_learned_from():
    dataset = Dataset("talks", (Video("a", 3.0),))

    with pytest.raises(DataError, match=r"^talks: must have a video file for each video"):
        divide(dataset, seed=0)


def test_the_table_has_all_kinds_of_labels_and_goes_on_after_an_interruption(
    painted, quick, encoder, tmp_path, monkeypatch
):
    made = []
    measure = transfer._measure

    def counted(*job):
        made.append(job[1:3])
        return measure(*job)

    monkeypatch.setattr(transfer, "_measure", counted)

    table = make_transfer_table(painted, encoder, Options(), tmp_path / "work")
    again = make_transfer_table(painted, encoder, Options(), tmp_path / "work")

    assert len(made) == 12
    assert table.to_text() == again.to_text()
    for section in ("MLP", "Transformer"):
        for row in transfer._ROWS.values():
            assert 0 <= table.cell(row, "keystep", section=section).value <= 100
    assert "Pretrained on 5 videos" in table.to_text()
    assert not list(tmp_path.glob("**/clips"))


def test_what_was_measured_with_other_options_is_not_taken(
    painted, quick, encoder, tmp_path, monkeypatch
):
    made = []
    numbers = {f"{head} {probe}": 0.5 for head in HEADS for probe in PROBES}
    monkeypatch.setattr(transfer, "_measure", lambda *job: made.append(job) or numbers)

    for threshold in (0.4, 0.6, 0.4):
        make_transfer_table(painted, encoder, Options(threshold=threshold), tmp_path / "work")

    assert len(made) == 2 * 12


def test_the_truth_of_the_videos_pretrained_on_is_not_used(painted, quick, encoder, tmp_path):
    corpus = divide(painted, seed=0)
    blind = replace(corpus, pretraining=replace(corpus.pretraining, truth={}))
    for name, one in (("seen", corpus), ("blind", blind)):
        transfer._label(one, encoder, {"graph": transfer.PathSearch(0.4)}, tmp_path / name)

    files = [sorted((tmp_path / name / "labels").rglob("*.parquet")) for name in ("seen", "blind")]

    assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]
