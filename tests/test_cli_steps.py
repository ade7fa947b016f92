"""`stepgraph steps` as a user meets it."""

import json

import pytest

import stepgraph as sg
from stepgraph.cli import main

TOLD = {
    "crack": "so first of all you crack the eggs into the bowl right here",
    "whisk": "and then you whisk the eggs until they are nice and smooth",
    "heat": "and now you heat the pan on the stove until it is hot",
    "fold": "and in the end you fold the omelette in the pan",
}


def write(folder, videos):
    folder.mkdir()
    for name, texts in videos.items():
        cues = [
            f"{n + 1}\n00:00:{10 * n:02},000 --> 00:00:{10 * n + 9:02},000\n{text}\n"
            for n, text in enumerate(texts)
        ]
        (folder / f"{name}.srt").write_text("\n".join(cues), "utf-8")
    return folder


@pytest.fixture
def omelettes(tmp_path):
    return write(tmp_path / "videos", {f"x{n}q": [*TOLD.values()] for n in range(6)})


def test_propose_check_edit_mine(omelettes, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    assert main(["steps", "suggest", "videos", "-o", "steps.txt"]) == 0
    assert "whisk the eggs" in capsys.readouterr().out
    words = sg.read_vocabulary("steps.txt")
    assert words.keysteps[0].startswith("crack the eggs")
    assert "// said in 6 of 6 videos" in (tmp_path / "steps.txt").read_text()

    lines = (tmp_path / "steps.txt").read_text().splitlines()
    kept = [line for line in lines if not line.startswith("whisk the eggs")]
    (tmp_path / "steps.txt").write_text("\n".join([*kept, "feed the goldfish"]))
    assert main(["steps", "check", "steps.txt", "videos"]) == 0
    out = capsys.readouterr().out
    assert "no step covers: whisk the eggs" in out
    assert "hardly ever heard: feed the goldfish" in out

    assert main(["mine", "videos", "--vocabulary", "steps.txt", "-o", "graph.json"]) == 0


def test_a_list_that_was_edited_is_not_overwritten(omelettes, tmp_path, capsys):
    (tmp_path / "steps.txt").write_text("mine\n")

    assert main(["steps", "suggest", str(omelettes), "-o", str(tmp_path / "steps.txt")]) == 1

    assert "must not be there yet" in capsys.readouterr().err
    assert (tmp_path / "steps.txt").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("videos", "error"),
    [
        ({"one": [*TOLD.values()]}, "got none in these 1 videos"),
        (
            {
                f"x{n}q": [f"so this is the idea of the {w} in the theory of {w} and of life"]
                for n, w in enumerate(["art", "law", "tax", "war", "sea", "sun", "gas", "oil"] * 5)
            },
            "got none in these 40 videos",
        ),
        (
            {f"x{n}q": [f"now you {v} the {o}"] for n, (v, o) in enumerate(
                (v, o)
                for v in ("paint", "lift", "shake", "wrap", "peel", "glue", "burn", "scrub")
                for o in ("bicycle", "lamp", "onion", "shelf", "violin")
            )},
            "got none in these 40 videos",
        ),
        ({f"x{n}q": ["jetzt schlagen wir die Eier auf", "dann Milch dazu"] for n in range(4)},
         "told in English"),
        ({f"x{n}q": [" ", "[Music]"] for n in range(3)}, "told in English, got none"),
    ],
    ids=["one video", "a lecture", "forty tasks", "German", "no words"],
)  # fmt: skip
def test_where_nothing_recurs_that_is_the_answer(videos, error, tmp_path, capsys):
    folder = write(tmp_path / "videos", videos)

    assert main(["steps", "suggest", str(folder), "-o", str(tmp_path / "steps.txt")]) == 1

    err = capsys.readouterr().err
    assert error in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "steps.txt").exists()


def test_one_video_is_enough_for_whoever_says_so(tmp_path, capsys):
    folder = write(tmp_path / "videos", {"one": [*TOLD.values()]})
    file = tmp_path / "steps.txt"

    asked = ["steps", "suggest", str(folder), "-o", str(file), "--min-videos", "1"]
    assert main(asked) == 0

    names = sg.read_vocabulary(file).keysteps
    assert [name.split()[0] for name in names] == ["crack", "whisk", "heat", "fold"]


def test_videos_without_words_are_left_out():
    silent = [sg.Video(f"s{n}", 10.0) for n in range(3)]

    with pytest.raises(sg.DataError, match="must hold videos that are told in English, got none"):
        sg.suggest_steps(silent)


def test_steps_come_from_the_article_that_answers(tmp_path, capsys):
    articles = tmp_path / "articles.jsonl"
    titles = {"Change a Tire": ["Loosen the nuts.", "Jack up."], "Make Tea": ["Boil.", "Pour."]}
    lines = [json.dumps({"title": title, "steps": steps}) for title, steps in titles.items()]
    articles.write_text("\n".join(lines))
    file = tmp_path / "steps.txt"

    asked = ["steps", "from-article", "how to", "change", "a tyre?", "--articles", str(articles)]
    assert main([*asked, "-o", str(file)]) == 0

    assert file.read_text() == "# Change a Tire\nLoosen the nuts\nJack up\n"
    assert main([*asked, "--top", "0"]) == 1
    assert "top must be at least 1" in capsys.readouterr().err


def test_the_demo_has_its_tasks_and_steps():
    proposed = sg.suggest_steps("demo", tasks=6)

    assert len(proposed.tasks) == 6
    assert {"whisk the eggs", "boil water"} <= {*proposed.vocabulary.keysteps}
    assert len(proposed.to_json()["tasks"]) == 6
