"""The command line as a person uses it: exit code, stdout, files."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stepgraph.cli import main
from stepgraph.decoders import DEFAULT_DECODER
from stepgraph.encoders.text import TextEncoder
from stepgraph.experiments import TABLES

VOCABULARY = "# Make tea\nboil the water\nadd the tea leaves\npour in the milk\nstir the tea\n"
SAID = {
    "monday": ["now I boil the water", "and I add the tea leaves", "then pour in some milk"],
    "tuesday": ["boil your water first", "add two spoons of tea leaves", "stir the tea well"],
    "friday": [
        "the water has to boil",
        "tea leaves go in",
        "pour in the milk",
        "and stir the tea",
    ],
}


def clock(seconds):
    return f"00:{seconds // 60:02}:{seconds % 60:02}"


def srt(sentences, every=6):
    return "\n".join(
        f"{i + 1}\n{clock(i * every)},000 --> {clock(i * every + every)},000\n{text}\n"
        for i, text in enumerate(sentences)
    )


@pytest.fixture
def videos(tmp_path, monkeypatch):
    """Three transcripts of one's own and a list of keysteps, in the working folder."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "videos"
    folder.mkdir()
    for name, sentences in SAID.items():
        (folder / f"{name}.srt").write_text(srt(sentences))
    (tmp_path / "steps.txt").write_text(VOCABULARY)
    return folder


@pytest.fixture
def graph(videos):
    assert main(["mine", "videos", "--vocabulary", "steps.txt", "-o", "graph.json"]) == 0
    return Path("graph.json")


def failed(capsys, *arguments):
    """Run a command that must fail; give the one line it says."""
    code = main(list(map(str, arguments)))
    said = capsys.readouterr().err
    assert code == 1
    assert said.startswith("stepgraph: error: ")
    assert said.count("\n") == 1
    assert "Traceback" not in said
    return said


def test_mine_writes_a_graph_and_says_what_is_in_it(videos, capsys):
    code = main(["mine", "videos", "--vocabulary", "steps.txt", "-o", "graph.json"])

    assert code == 0
    assert "graph.json: 4 keysteps" in capsys.readouterr().out
    assert json.loads(Path("graph.json").read_text())["mined_on"] == [
        "friday",
        "monday",
        "tuesday",
    ]


def test_three_commands_give_chapters_of_ones_own_videos(graph, capsys):
    code = main(["recognize", "videos", "--graph", "graph.json", "-o", "chapters"])

    assert code == 0
    names = sorted(path.name for path in Path("chapters").iterdir())
    suffixes = (".steps.json", ".steps.csv", ".chapters.vtt", ".chapters.txt")
    each = [f"{video}{suffix}" for video in SAID for suffix in suffixes]
    assert names == sorted(["maps.json", *each])
    assert "boil the water" in Path("chapters/monday.chapters.vtt").read_text()
    assert "3 videos" in capsys.readouterr().out


def test_recognising_one_video_prints_its_chapters(graph, capsys):
    main(["recognize", "videos/monday.srt", "--graph", "graph.json", "-o", "chapters"])

    printed = capsys.readouterr().out
    assert printed.index("boil the water") < printed.index("add the tea leaves")
    assert "0:00" in printed


def test_as_many_chapters_are_told_as_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["mine", "demo", "-o", "graph.json"])
    recognise, told = ["recognize", "demo", "--graph", "graph.json", "-o", "out"], []
    for overlap in (["--overlap", "0"], []):
        main([*recognise, *overlap])
        files = Path("out").glob("*.steps.json")
        told.append(sum(len(json.loads(path.read_text())["chapters"]) for path in files))

    assert told[0] > told[1] > 36
    assert main([*recognise, "--overlap", "2"]) == 1
    assert "overlap must be between 0 and 1, got 2.0" in capsys.readouterr().err


def test_evaluate_prints_one_json_object(capsys):
    code = main(["evaluate", "demo", "--decoder", "argmax", "--json"])

    printed = json.loads(capsys.readouterr().out)
    assert code == 0
    assert printed["videos"] == 36
    assert printed["decoder"] == "argmax"
    assert printed["rows"] > 5000
    for metric in ("accuracy", "accuracy_per_keystep", "iou", "iou_per_keystep"):
        assert 0 < printed[metric] < 1
    assert printed["graph_mined_on"] == "the 36 evaluated videos, without their truth"


def test_what_was_evaluated_can_be_looked_at(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    assert main(["evaluate", "demo", "--decoder", "argmax", "-o", "of demo"]) == 0

    *_, last = capsys.readouterr().out.splitlines()
    assert last == "Watch, search and correct: python -m stepgraph view 'of demo'"
    assert len([*Path("of demo").glob("*.steps.json")]) == 36
    assert main(["export", "of demo", "--format", "srt"]) == 0


def test_threshold_is_that_of_the_decoder(capsys):
    reports = []
    for threshold in ("0.3", "0.5"):
        main(["evaluate", "demo", "--threshold", threshold, "--json"])
        reports.append(json.loads(capsys.readouterr().out))

    assert [report["options"] for report in reports] == [{"threshold": 0.3}, {"threshold": 0.5}]
    assert reports[0]["accuracy"] != reports[1]["accuracy"]


def test_demo_shows_path_search_above_argmax(tmp_path, capsys):
    code = main(["demo", "-o", str(tmp_path / "out")])

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    argmax = next(line for line in lines if line and line[0] == "argmax")
    path_search = next(line for line in lines if line and line[0] == "path-search")
    assert code == 0
    assert len(argmax) == len(path_search) == 5
    for ours, theirs in zip(path_search[1:], argmax[1:], strict=True):
        assert float(ours) > float(theirs)
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000
    assert (tmp_path / "out" / "graph.json").is_file()
    assert len(list((tmp_path / "out" / "keysteps").glob("*.vtt"))) == 36


def test_evaluating_with_a_graph_of_other_videos_says_so(videos, capsys):
    (videos / "steps.txt").write_text(VOCABULARY)
    (videos / "truth.csv").write_text("video,start,end,keystep\nmonday,0,6,boil the water\n")
    other = videos.parent / "other"
    other.mkdir()
    (other / "sunday.srt").write_text(srt(["boil the water", "add the tea leaves"]))
    main(["mine", "other", "--vocabulary", "videos/steps.txt", "-o", "graph.json"])
    capsys.readouterr()

    code = main(["evaluate", "videos", "--graph", "graph.json", "--json"])

    printed = json.loads(capsys.readouterr().out)
    assert code == 0
    assert printed["graph_mined_on"] == "1 other videos"
    assert printed["videos"] == 1


def test_a_graph_answers_questions(graph, capsys):
    capsys.readouterr()
    main(["graph", "show", "graph.json"])
    main(["graph", "next", "graph.json", "boil the water"])
    main(["graph", "path", "graph.json", "boil the water", "stir the tea"])
    main(["graph", "relation", "graph.json", "boil the water", "add the tea leaves"])
    printed = capsys.readouterr().out

    assert "4 keysteps of 1 tasks" in printed
    assert "After 'boil the water'" in printed
    assert "boil the water → " in printed
    assert "directional: 'boil the water' comes before 'add the tea leaves'" in printed


@pytest.mark.parametrize(
    "question",
    [["show"], ["next", "stir the tea"], ["path", "boil the water", "stir the tea"]],
    ids=lambda question: question[0],
)
def test_a_graph_answers_in_json_too(graph, capsys, question):
    capsys.readouterr()

    main(["graph", question[0], "graph.json", *question[1:], "--json"])

    assert isinstance(json.loads(capsys.readouterr().out), dict)


def test_wrong_usage_exits_with_2(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["recognize", "videos"])

    assert exit_.value.code == 2
    assert "--graph" in capsys.readouterr().err


def test_help_names_the_decoder_and_the_tables_that_there_are(capsys):
    for verb, told in (("recognize", f"{DEFAULT_DECODER} (default)"), ("reproduce", TABLES)):
        with pytest.raises(SystemExit):
            main([verb, "--help"])
        said = " ".join(capsys.readouterr().out.split())
        assert all(name in said for name in ([told] if isinstance(told, str) else told))


def test_an_unknown_source_is_refused(videos, capsys):
    said = failed(capsys, "mine", "nowhere", "--vocabulary", "steps.txt")

    assert "source must be a folder" in said
    assert "'nowhere', which does not exist" in said


def test_a_source_without_vocabulary_asks_for_one(videos, capsys):
    assert "give it as vocabulary (--vocabulary)" in failed(capsys, "mine", "videos")


def test_an_unknown_decoder_is_answered_with_the_known_ones(capsys):
    said = failed(capsys, "evaluate", "demo", "--decoder", "oracle", "--json")

    assert "decoder must be one of adaptive-threshold, anchors-only, argmax, argmax-hold," in said


def test_an_option_that_a_decoder_lacks_is_refused(capsys):
    said = failed(capsys, "evaluate", "demo", "--decoder", "argmax", "--threshold", "1", "--json")

    assert "decoder 'argmax' has no option 'threshold'" in said


def test_a_misspelt_keystep_is_answered_with_the_nearest(graph, capsys):
    capsys.readouterr()

    said = failed(capsys, "graph", "next", "graph.json", "boil water")

    assert "did you mean 'boil the water'" in said


def test_a_source_without_truth_cannot_be_evaluated(videos, capsys):
    assert "must hold a truth (truth.csv with video, start, end, keystep," in failed(
        capsys, "evaluate", "videos", "--json"
    )


def test_debug_shows_the_traceback(videos):
    with pytest.raises(ValueError, match="source must be a folder"):
        main(["--debug", "mine", "nowhere"])


MINE = ["mine", "videos", "--vocabulary", "steps.txt", "--context", "0", "-o", "graph.json"]
INTERRUPTED = f"""
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
from stepgraph.cli import main
from stepgraph.encoders import text

text._SENTENCES = 2
embed = text.TextEncoder._embed
calls = []

def interrupted_embed(self, texts):
    calls.append(len(texts))
    if len(calls) > 3:
        os.kill(os.getpid(), signal.SIGINT)
    return embed(self, texts)

text.TextEncoder._embed = interrupted_embed
sys.exit(main({MINE}))
"""


@pytest.mark.slow
def test_an_interruption_at_the_very_beginning_is_one_line(monkeypatch, capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("stepgraph.cli.make_parser", interrupted)

    assert main(["demo"]) == 1
    assert capsys.readouterr().err.startswith("stepgraph: error: interrupted; ")


def test_an_interrupted_run_goes_on_where_it_was(videos, tmp_path, monkeypatch):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path / "cache"))
    embed, encoded = TextEncoder._embed, []

    def counting_embed(self, texts):
        encoded.extend(texts)
        return embed(self, texts)

    command = [sys.executable, "-c", INTERRUPTED]
    first = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    left = [path.name for path in tmp_path.iterdir()]
    monkeypatch.setattr(TextEncoder, "_embed", counting_embed)
    second = main(MINE)
    by_the_second = len(encoded)
    third = main(MINE)

    assert first.returncode == 1
    assert "interrupted; finished encodings are kept" in first.stderr
    assert first.stderr.count("\n") == 1
    assert sorted(left) == ["cache", "steps.txt", "videos"]
    assert second == third == 0
    texts = {text for said in SAID.values() for text in said} | {*VOCABULARY.splitlines()[1:]}
    assert by_the_second == len(encoded) == len(texts) - 3 * 2


def test_shards_of_a_source_add_up_to_the_whole(videos, capsys):
    for shard in ("1/2", "2/2"):
        out = f"part{shard[0]}.json"
        main(["mine", "videos", "--vocabulary", "steps.txt", "--shard", shard, "-o", out])
    main(["mine", "videos", "--vocabulary", "steps.txt", "-o", "whole.json"])

    code = main(["graph", "merge", "part1.json", "part2.json", "-o", "merged.json"])

    merged, whole = (json.loads(Path(name).read_text()) for name in ("merged.json", "whole.json"))
    assert code == 0
    assert merged["counts"] == whole["counts"]
    assert merged["timing"] == whole["timing"]
    assert sorted(merged["mined_on"]) == sorted(whole["mined_on"])


def test_a_shard_that_does_not_exist_is_wrong_usage(capsys):
    with pytest.raises(SystemExit):
        main(["mine", "demo", "--shard", "3/2"])

    assert (
        "shard must be I/N with I from 1 to N, such as 2/8, got '3/2'" in capsys.readouterr().err
    )


@pytest.mark.data
def test_datasets_lists_all_that_lies_in_a_folder(real_data, capsys):
    code = main(["datasets", str(real_data), "--json"])

    found = {one["name"]: one["counts"] for one in json.loads(capsys.readouterr().out)}
    assert code == 0
    assert found["CrossTask"] == {
        "tasks": 18,
        "related_tasks": 65,
        "steps": 133,
        "unique_keysteps": 105,
        "listed_videos": 4700,
        "annotated_videos": 2412,
        "narrated_videos": 349,
    }
    assert found["COIN"]["videos"] == 11006
    assert [found["COIN"][key] for key in ("steps", "unique_keysteps", "tasks")] == [778, 749, 180]
    assert found["HowTo100M"] == {"videos": 771, "tasks": 15}
    assert found["WikiHow articles"]["articles"] == 2110


def test_a_folder_without_data_sets_is_refused(tmp_path, capsys):
    assert "must contain CrossTask (tasks_primary.txt), COIN" in failed(
        capsys, "datasets", tmp_path
    )


@pytest.mark.data
@pytest.mark.parametrize(
    ("source", "keysteps", "tasks"),
    [("crosstask:{}/crosstask", 105, 18), ("coin:{}/coin", 749, 180)],
)
def test_vocabularies_of_the_real_data_sets(real_data, capsys, source, keysteps, tasks):
    main(["vocabulary", source.format(real_data), "--json"])

    printed = json.loads(capsys.readouterr().out)
    assert (printed["keysteps"], printed["tasks"]) == (keysteps, tasks)


@pytest.mark.data
def test_the_vocabulary_of_howto100m_comes_from_articles(real_data, tmp_path, capsys):
    source, articles = f"howto100m:{real_data}/howto100m", f"{real_data}/wikihow_articles.jsonl"
    out = tmp_path / "vocabulary.json"
    main(["vocabulary", source, "--articles", articles, "--min-videos", "20", "-o", str(out)])

    assert "174 keysteps of 11 tasks" in capsys.readouterr().out
    assert main(["vocabulary", str(out), "--json"]) == 0


def test_noise_is_mixed_in(videos, capsys):
    Path("others.txt").write_text("paint the fence\nfeed the cat\nwash the car\nmow the lawn\n")

    main(["vocabulary", "steps.txt", "--noise", "0.5", "--noise-from", "others.txt", "--json"])

    assert json.loads(capsys.readouterr().out)["keysteps"] == 6


def test_a_vocabulary_of_howto100m_asks_for_articles(tmp_path, capsys):
    (tmp_path / "HowTo100M_v1.csv").write_text("video_id,category_1,category_2,rank,task_id\n")

    said = failed(capsys, "vocabulary", f"howto100m:{tmp_path}")

    assert "give WikiHow articles" in said


@pytest.mark.data
def test_behaviours_of_the_authors_are_measured_by_name(real_data, tmp_path, capsys):
    source = copy_some_videos(real_data / "crosstask", tmp_path / "crosstask")

    code = main(["evaluate", f"crosstask:{source}", "--compat", "raw_costs,limit", "--json"])

    printed = json.loads(capsys.readouterr().out)
    assert code == 0
    assert printed["decoder"] == "compat"
    assert printed["compat"]["raw_costs"] is True
    assert printed["compat"]["unlabelled_end"] is False


def copy_some_videos(release, folder, count=4):
    """A CrossTask release of a few narrated videos."""
    for part in ("annotations", "narration"):
        (folder / part).mkdir(parents=True)
    for name in ("tasks_primary.txt", "tasks_related.txt", "videos.csv", "videos_val.csv"):
        shutil.copy(release / name, folder / name)
    for narration in sorted((release / "narration").iterdir())[:count]:
        shutil.copy(narration, folder / "narration")
        for annotation in (release / "annotations").glob(f"*_{narration.stem}.csv"):
            shutil.copy(annotation, folder / "annotations")
    return folder


def test_compat_is_for_the_data_sets_of_the_authors(capsys):
    said = failed(capsys, "evaluate", "demo", "--compat", "authors", "--json")

    assert "compat must be for crosstask or coin, text or video, got 'demo'" in said


def test_compat_does_not_silently_ignore_another_option(capsys):
    said = failed(
        capsys, "evaluate", "demo", "--compat", "authors", "--threshold", "0.3", "--json"
    )

    assert "--compat and --threshold are mutually exclusive: remove one" in said


def test_mining_is_not_asked_for_beside_a_graph_that_is_mined(graph, capsys):
    said = failed(capsys, "evaluate", "demo", "--graph", graph, "--min-score", "0.5")

    assert "--graph and --min-score are mutually exclusive: remove one" in said


def test_a_table_of_the_paper_is_printed_written_and_resumed(tmp_path, capsys):
    command = ["reproduce", "thresholds", "demo", "-o", str(tmp_path), "--format", "json"]

    assert main(command) == 0
    first = capsys.readouterr().out
    assert main(command) == 0

    assert json.loads(first) == json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "thresholds.json").read_text()) == json.loads(first)
    assert "| DistantSup. |" in (tmp_path / "thresholds.md").read_text()


def test_an_unknown_table_is_answered_with_the_known_ones(capsys):
    assert "table must be one of table1, table2" in failed(capsys, "reproduce", "table9", "demo")


def test_any_option_of_a_decoder_may_be_given(capsys):
    main(["evaluate", "demo", "--option", "self-transition=0.9", "--json"])

    assert json.loads(capsys.readouterr().out)["options"]["self_transition"] == 0.9


def test_an_option_that_is_no_number_is_refused(capsys):
    said = failed(capsys, "evaluate", "demo", "--option", "order", "--json")

    assert "--option must be NAME=VALUE, such as temperature=0.1, got 'order'" in said


def test_a_vocabulary_that_the_truth_does_not_refer_to_is_refused(videos, capsys):
    said = failed(capsys, "evaluate", "demo", "--vocabulary", "steps.txt", "--json")

    assert "--vocabulary must be the vocabulary of the truth of" in said
