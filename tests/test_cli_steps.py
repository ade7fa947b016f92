"""`stepgraph steps` as a user meets it."""

import json

import pytest

import stepgraph as sg
from stepgraph.cli import main
from stepgraph.cli.steps import _sentences
from stepgraph.pipeline.checking import Finding, check_steps
from stepgraph.vocabulary.suggested import SuggestedStep, SuggestedTask, SuggestedVocabulary

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
    out = capsys.readouterr().out
    assert "whisk the eggs" in out
    assert out.endswith("then run: stepgraph steps check steps.txt videos\n")
    words = sg.read_vocabulary("steps.txt")
    assert words.keysteps[0].startswith("crack the eggs")
    assert "// mentioned in 6 of 6 videos" in (tmp_path / "steps.txt").read_text()

    lines = (tmp_path / "steps.txt").read_text().splitlines()
    kept = [line for line in lines if not line.startswith("whisk the eggs")]
    (tmp_path / "steps.txt").write_text("\n".join([*kept, "feed the goldfish"]))
    assert main(["steps", "check", "steps.txt", "videos"]) == 0
    out = capsys.readouterr().out
    assert "missing: whisk the eggs" in out
    assert "unmentioned: feed the goldfish" in out

    assert main(["mine", "videos", "--vocabulary", "steps.txt", "-o", "graph.json"]) == 0


def test_a_list_that_was_edited_is_not_overwritten(omelettes, tmp_path, capsys):
    (tmp_path / "steps.txt").write_text("mine\n")

    assert main(["steps", "suggest", str(omelettes), "-o", str(tmp_path / "steps.txt")]) == 1

    assert "must not exist yet" in capsys.readouterr().err
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
                for o in ("bicycle", "lamp", "onion", "shelf", "violin", "boat", "wall", "tent",
                          "clock", "fence", "glove", "carpet", "drum", "candle", "basket", "plum",
                          "kite", "rope", "anchor", "mirror", "window", "pillow", "ladder", "bell",
                          "feather")
            )},
            "got none in these 200 videos",
        ),
        ({f"x{n}q": ["jetzt schlagen wir die Eier auf", "dann Milch dazu"] for n in range(4)},
         "with an English narration"),
        ({f"x{n}q": [" ", "[Music]"] for n in range(3)}, "with an English narration, got none"),
    ],
    ids=["one video", "a lecture", "two hundred tasks", "German", "no words"],
)  # fmt: skip
def test_where_nothing_recurs_that_is_the_answer(videos, error, tmp_path, capsys):
    folder = write(tmp_path / "videos", videos)

    assert main(["steps", "suggest", str(folder), "-o", str(tmp_path / "steps.txt")]) == 1

    err = capsys.readouterr().err
    assert error in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "steps.txt").exists()


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (
            ("--tasks", "7"),
            "tasks must be at most the number of videos with an English narration, 6, got 7",
        ),
        (
            ("--min-videos", "9", "--tasks", "2"),
            "task, fewer tasks (--tasks), or lower",
        ),
        (("--min-videos", "9", "--tasks", "1"), "videos of one task, or lower min_videos"),
    ],
)
def test_what_to_change_is_said(asked, error, omelettes, tmp_path, capsys):
    assert main(["steps", "suggest", str(omelettes), "-o", str(tmp_path / "s.txt"), *asked]) == 1

    assert error in capsys.readouterr().err


def test_one_video_is_enough_for_whoever_says_so(tmp_path, capsys):
    folder = write(tmp_path / "videos", {"one": [*TOLD.values()]})
    file = tmp_path / "steps.txt"

    asked = ["steps", "suggest", str(folder), "-o", str(file), "--min-videos", "1"]
    assert main(asked) == 0

    names = sg.read_vocabulary(file).keysteps
    assert [name.split()[0] for name in names] == ["crack", "whisk", "heat", "fold"]


def test_videos_without_words_are_left_out():
    silent = [sg.Video(f"s{n}", 10.0) for n in range(3)]

    with pytest.raises(sg.DataError, match="must hold videos with an English narration, got none"):
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
    assert main([*asked, "-o", str(file)]) == 1
    assert "must not exist yet" in capsys.readouterr().err
    assert main([*asked, "--top", "0"]) == 1
    assert "top must be at least 1" in capsys.readouterr().err


def test_an_article_of_something_else_is_said_to_be_one(tmp_path, capsys):
    articles = tmp_path / "articles.jsonl"
    articles.write_text(json.dumps({"title": "Make Tea", "steps": ["Boil water.", "Pour."]}))

    asked = ["steps", "from-article", "sue", "a landlord", "--articles", str(articles)]
    assert main(asked) == 0

    out, err = capsys.readouterr()
    assert out == "# Make Tea\nBoil water\nPour\n"
    assert "got the nearest 'Make Tea'" in err
    assert "likely of something else" in err
    assert main([*asked, "--strict"]) == 1


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "got an empty file"),
        ("no articles", "got a file that begins 'no articles'"),
        ('{"title": "Make', "must hold articles, got none"),
        (None, "got no such file"),
    ],
)
def test_a_file_without_articles_is_one_line(text, error, tmp_path, capsys):
    articles = tmp_path / "articles.jsonl"
    if text is not None:
        articles.write_text(text)

    assert main(["steps", "from-article", "make tea", "--articles", str(articles)]) == 1

    err = capsys.readouterr().err
    assert error in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "must list at least 2 keysteps"),
        ("# Tea\n# Coffee\n", "must list at least 2 keysteps"),
        ("# Tea\n" + "".join(f"boil pot {n}\n" for n in range(5000)), "got 5000; put a heading"),
    ],
    ids=["empty", "headings alone", "5,000 lines"],
)
def test_a_list_that_cannot_be_checked_is_one_line(text, error, omelettes, tmp_path, capsys):
    (tmp_path / "steps.txt").write_text(text)

    assert main(["steps", "check", str(tmp_path / "steps.txt"), str(omelettes)]) == 1

    err = capsys.readouterr().err
    assert error in err
    assert len(err.strip().splitlines()) == 1


def test_a_list_of_another_task_is_said_to_be_one(omelettes, tmp_path, capsys):
    (tmp_path / "steps.txt").write_text("# Music\npolish the trumpet\ntune the guitar\n")

    assert main(["steps", "check", str(tmp_path / "steps.txt"), str(omelettes)]) == 0

    out = capsys.readouterr().out
    assert out.splitlines()[:2] == [
        "Music (6 videos)",
        "  no step matches what these videos often mention; is the list of another task?",
    ]
    assert "missing: whisk the eggs" in out


def test_videos_that_hardly_share_a_step_may_be_of_several_tasks(
    omelettes, tmp_path, monkeypatch, capsys
):
    step = SuggestedStep("add water", 4, False, (), ())
    proposed = SuggestedVocabulary(
        (SuggestedTask("Water", tuple("abcdefghijklmnopqrstu"), (step,)),)
    )
    monkeypatch.setattr("stepgraph.cli.steps.suggest_steps", lambda *_, **__: proposed)
    asked = ["steps", "suggest", str(omelettes), "-o", str(tmp_path / "steps.txt"), "--overwrite"]

    assert main(asked) == 0
    assert "If they show several tasks, pass their number: --tasks N" in capsys.readouterr().out
    assert main([*asked, "--tasks", "1"]) == 0
    assert "--tasks N" not in capsys.readouterr().out


def test_the_demo_has_its_tasks_and_steps():
    proposed = sg.suggest_steps("demo", tasks=6)

    assert len(proposed.tasks) == 6
    assert {"whisk the eggs", "boil water"} <= {*proposed.vocabulary.keysteps}
    assert len(proposed.to_json()["tasks"]) == 6


def test_pairs_that_share_a_step_are_told_together():
    pairs = [
        *(
            ("order", "dip", "beat", 5),
            ("order", "flip", "beat", 4),
            ("order", "beat", "crack", 3),
        ),
        *(
            ("order", "melt", "soak", 2),
            ("duplicate", "dip", "soak", 6),
            ("duplicate", "cut", "dip", 5),
        ),
    ]
    found = [Finding(kind, "Toast", (one, other), n, 7) for kind, one, other, n in pairs]
    found.append(Finding("unmentioned", "Toast", ("cut",), 0, 7))

    assert [*_sentences(found)] == [
        "unmentioned: cut (among the best matches in 0 of 7 videos)",
        "order: beat is listed before crack (3 of 7 videos), but done after",
        "order: beat is listed after dip (5 of 7 videos), flip (4 of 7 videos), but done before",
        "order: melt is listed before soak (2 of 7 videos), but done after",
        "duplicate: dip matches the same sentences as soak (6 of 7 videos), cut (5 of 7 videos)",
    ]


def test_what_is_not_heard_is_in_no_order():
    demo = sg.open_source("demo")
    [tea] = [task for task in demo.vocabulary.tasks if "tea" in task.lower()]
    steps = [demo.vocabulary.keysteps[keystep] for keystep in demo.vocabulary.tasks[tea]]

    found = check_steps(
        ["# " + tea, "polish the trumpet", *steps[::-1]],
        [video for video in demo.videos if video.task == tea],
    )

    pairs = [one.keysteps for one in found.findings if one.kind in ("order", "duplicate")]
    assert ("polish the trumpet",) in [one.keysteps for one in found.of("unmentioned")]
    assert len(pairs) > 3
    assert not any("polish the trumpet" in pair for pair in pairs)
