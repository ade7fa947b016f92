import pytest

from stepgraph.experiments.table import (
    ANY,
    DATASETS,
    HEADS,
    HOWTO100M,
    MODALITIES,
    PRINTED,
    PaperPlace,
)


@pytest.mark.parametrize(
    ("place", "value", "error"),
    [
        (("table1", "Random", "crosstask", "text", "acc"), 0.01, None),
        (("table1", "DistantSup.", "coin", "text", "acc"), 9.8, None),
        (("table1", "DistantSup.", "crosstask", "text", "iou"), 3.7, None),
        (("table1", "VideoCLIP", "coin", "video-text", "acc"), 13.3, None),
        (("table1", "Linear Steps", "coin", "video-text", "iou"), 4.0, None),
        (("table1", "Auto-Reg", "coin", "video-text", "acc"), 13.7, None),
        (("table1", "Pruning Keysteps", "crosstask", "text", "acc"), 16.4, None),
        (("table1", "Ours", "coin", "text", "acc"), 16.3, 0.3),
        (("table1", "Ours", "crosstask", "text", "acc"), 20.0, 0.2),
        (("table1", "Ours", "crosstask", "video", "iou"), 6.6, 0.0),
        (("table1", "Ours", "crosstask", "video-text", "iou"), 6.7, 0.0),
        (("table1-expanded", "Ours", "coin", "video-text", "acc"), 16.9, 0.1),
        (("table1-expanded", "Ours w/ γ=0.3", "crosstask", "text", "acc"), 19.1, None),
        (("table1-expanded", "Ours w/ γ=0.4", "coin", "video", "iou"), 4.6, None),
        (("table1-expanded", "Ours w/ γ=0.5", "crosstask", "text", "iou"), 4.9, None),
        (("table1-expanded", "Video-Text Fusion", "coin", "video-text", "acc"), 14.0, None),
        (("table1-expanded", "BRF", "crosstask", "text", "acc"), 17.1, None),
        (("table1-expanded", "BRF", "crosstask", "video-text", "iou"), 6.5, None),
        (("table2", "Random", "crosstask", ANY, "iou"), 4.7, None),
        (("table2", "Graph2Vid", "crosstask", ANY, "iou"), 16.8, None),
        (("table2", "Ours", "crosstask", ANY, "acc"), 30.5, 0.2),
        (("ablations", "Non-probabilistic", "coin", "text", "acc"), 10.5, None),
        (("ablations", "Adaptive Threshold", "crosstask", "video-text", "acc"), 28.6, None),
        (("metrics", "VideoCLIP", "coin", "video", "ed"), 0.90, None),
        (("metrics", "Ours", "crosstask", "text", "ed"), 0.78, None),
        (("metrics", "Ours", "coin", "video-text", "f1"), 18.8, None),
        (("metrics", "Adaptive Threshold", "coin", "text", "f1"), 10.9, None),
        (("entropy", "DistantSup.", "crosstask", "text", "high"), 11.1, None),
        (("entropy", "Ours", "crosstask", "text", "low"), 25.1, None),
        (("entropy", "Ours", "crosstask", "video-text", "high"), 23.1, None),
        (("noise", "1 x N", "crosstask", "text", "ours"), 20.1, None),
        (("noise", "1.5 x N", "coin", "text", "argmax"), 8.4, None),
        (("noise", "10 x N", "coin", "text", "gain"), 95.0, None),
        (("noise", "10 x N", "crosstask", "text", "gain"), 35.0, None),
    ],
)
def test_numbers_are_those_that_the_paper_prints(place, value, error):
    number = PRINTED[PaperPlace(*place)]

    assert (number.value, number.error) == (value, error)


def test_numbers_are_shown_as_they_are_printed():
    assert PRINTED[PaperPlace("table1", "Ours", "crosstask", "text", "acc")].text == "20.0 ± 0.2"
    assert PRINTED[PaperPlace("table1", "Random", "coin", "text", "acc")].text == "0.0"
    assert PRINTED[PaperPlace("noise", "1 x N", "coin", "text", "gain")].text == "66 %"


def test_what_is_n_a_in_the_paper_is_not_there():
    assert PaperPlace("table1", "VideoCLIP", "coin", "text", "acc") not in PRINTED
    assert PaperPlace("table1", "DistantSup.", "coin", "video", "acc") not in PRINTED
    assert (
        PaperPlace("table1-expanded", "Ours w/ γ=0.3", "coin", "video-text", "acc") not in PRINTED
    )
    assert PaperPlace("table2", "Ours", "coin", ANY, "acc") not in PRINTED


@pytest.mark.parametrize(
    ("table", "numbers"),
    # Rows that are whole have 12 numbers, those of VideoCLIP 8, of DistantSup. 4.
    [
        ("table1", 5 * 12 + 8 + 4),
        ("table1-expanded", 5 * 12 + 8 + 4 + 3 * 8 + 4 + 12),
        ("table2", 5 * 2),
        ("ablations", 3 * 12),
        ("metrics", 3 * 12 + 8 + 4),
        ("entropy", 3 * 12 + 8 + 4),
        ("noise", 6 * 6),
    ],
)
def test_every_number_of_a_table_is_there(table, numbers):
    assert sum(place.table == table for place in PRINTED) == numbers


def test_the_expanded_table_repeats_table_1():
    for place, number in PRINTED.items():
        if place.table == "table1":
            assert PRINTED[place._replace(table="table1-expanded")] == number


def test_relative_gains_are_those_of_the_printed_accuracies():
    for place, gain in PRINTED.items():
        if place.metric == "gain":
            before = PRINTED[place._replace(metric="argmax")].value
            after = PRINTED[place._replace(metric="ours")].value
            # The paper computed them before it rounded the accuracies.
            assert gain.value == pytest.approx(100 * (after / before - 1), abs=3)


def test_places_name_known_data_sets_and_modalities():
    assert {place.dataset for place in PRINTED} == {*DATASETS, HOWTO100M}
    assert {place.modality for place in PRINTED} == {*MODALITIES, *HEADS, ANY}


def test_the_downstream_table_has_twelve_cells_of_ours():
    found = {
        (place.modality, place.dataset, place.metric): number.text
        for place, number in PRINTED.items()
        if place.table == "downstream" and place.method == "Ours"
    }

    assert len(found) == 12
    assert found["mlp", "crosstask", "keystep"] == "59.5 ± 0.1"
    assert found["transformer", "coin", "forecast"] == "40.2 ± 0.1"


@pytest.mark.data
def test_numbers_agree_with_the_source_of_the_paper(real_data):
    source = real_data.parent / "paper.tex"
    if not source.is_file():
        pytest.skip("the source of the paper is not there")
    found = " ".join(source.read_text("utf-8").split())

    assert "Auto-Reg \\cite{Sutskever14seq2seq} &10.2&3.1&16.4&3.7 &13.6&4.3&28.5&6.5" in found
    assert "BRF & 13.5 & 4.1 & 17.1 & 4.3 &14.0& 4.4" in found
