import json

import pytest

from stepgraph.experiments.table import NOTHING, Cell, Column, Row, Table, measured_cell

COLUMNS = (
    Column("accuracy", "Acc"),
    Column("edit_distance", "ED ↓", "fraction"),
    Column("acc", "Acc", group="paper, COIN"),
)
WHY = "no video scores: the source has narration only"
TABLE = Table(
    "tiny",
    "A tiny table",
    COLUMNS,
    (
        Row(
            "Text-only",
            "Ours",
            (
                measured_cell(0.5, "percent", 0.01),
                measured_cell(0.25, "fraction"),
                Cell(16.3, 0.3, text="16.3 ± 0.3"),
            ),
        ),
        Row("Video-only", "Ours", (Cell(None, reason=WHY), Cell(None, reason=WHY), NOTHING)),
    ),
    ("Measured here: 3 videos.",),
)

TEXT = """\
A tiny table

      ── measured here ──   paper, COIN
             Acc     ED ↓            Acc
Text-only
Ours  50.0 ± 1.0     0.25     16.3 ± 0.3
Video-only
Ours     n/a [1]  n/a [1]              –

- Measured here: 3 videos.
n/a [1]: no video scores: the source has narration only
"""

MARKDOWN = """\
## A tiny table

**Text-only**

|  | Acc<br>measured here | ED ↓<br>measured here | *Acc<br>paper, COIN* |
| --- | ---: | ---: | ---: |
| Ours | 50.0 ± 1.0 | 0.25 | *16.3 ± 0.3* |

**Video-only**

|  | Acc<br>measured here | ED ↓<br>measured here | *Acc<br>paper, COIN* |
| --- | ---: | ---: | ---: |
| Ours | n/a [1] | n/a [1] | *–* |

- Measured here: 3 videos.
- n/a [1]: no video scores: the source has narration only
"""


def test_text_tells_measured_and_printed_apart():
    assert TABLE.to_text() == TEXT


def test_markdown_has_the_paper_in_italics():
    assert TABLE.to_markdown() == MARKDOWN


def test_json_keeps_numbers_whole_and_reasons_beside_nulls():
    content = json.loads(TABLE.to_json())

    assert content["columns"][1] == {
        "key": "edit_distance",
        "name": "ED ↓",
        "group": "measured here",
        "unit": "fraction",
    }
    first, second = content["rows"]
    assert first["measured here"]["accuracy"] == {"value": 50.0, "standard_error": 1.0}
    assert first["paper, COIN"] == {"acc": {"value": 16.3, "standard_error": 0.3}}
    assert second["measured here"]["accuracy"] == {"value": None, "reason": WHY}
    assert second["paper, COIN"] == {"acc": {"value": None}}


def test_reasons_are_numbered_once():
    assert TABLE.reasons == (WHY,)


def test_a_cell_is_found_by_row_and_metric():
    assert TABLE.cell("Ours", "accuracy").value == 50.0
    assert TABLE.cell("Ours", "accuracy", section="Video-only").reason == WHY


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.12345, "percent", "12.3"),
        (0.825, "fraction", "0.82"),
        (0.66, "relative", "+66 %"),
        (-0.041, "relative", "-4 %"),
        (0.0, "percent", "0.0"),
    ],
)
def test_numbers_are_shown_in_their_unit(value, unit, text):
    assert measured_cell(value, unit).text == text


def test_an_undefined_metric_is_n_a_and_never_zero():
    cell = measured_cell(float("nan"), "percent")

    assert cell.value is None
    assert "undefined" in cell.reason


def test_a_standard_error_that_cannot_be_had_is_left_out():
    assert measured_cell(0.5, "percent", float("nan")).error is None
    assert measured_cell(0.5, "percent", None).text == "50.0"
