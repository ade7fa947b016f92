"""What lies in a folder: miniatures of each kind, what they lack, and what is none of them."""

import json

import pytest

from stepgraph.datasets import REGISTRY, build_vocabulary, open_source, survey
from stepgraph.errors import ConfigError, DataError

VTT = "WEBVTT\n\n00:00.000 --> 00:02.000\nboil the water\n"
TASKS = "111\nMake Tea\nhttp://example.org/tea\n2\nboil water,pour water\n"
CROSSTASK = {
    "tasks_primary.txt": TASKS,
    "tasks_related.txt": TASKS.replace("111", "333").replace("Tea", "Stock"),
    "videos.csv": "111,one,u\n111,two,u\n",
    "videos_val.csv": "111,two,u\n",
    "annotations/111_one.csv": "1,0.5,2.0\n2,2.0,4.25\n",
    "annotations/111_two.csv": "1,0,1\n",
    "narration/one.vtt": VTT,
    "narration/two.vtt": VTT,
}
STEPS = [
    {"id": "0", "label": "boil", "segment": [0, 1]},
    {"id": "1", "label": "pour", "segment": [1, 2]},
]
TEA = {"class": "MakeTea", "subset": "training", "duration": 3, "annotation": STEPS}
COIN = {
    "COIN.json": json.dumps({"database": {"one": TEA, "two": TEA | {"subset": "testing"}}}),
    "narration/one.vtt": VTT,
    "narration/two.vtt": VTT,
}
SAID = {"start": [0.0], "end": [2.0], "text": ["boil the water"]}
HOWTO100M = {
    "raw_caption.json": json.dumps({"one": SAID, "two": SAID}),
    "HowTo100M_v1.csv": "video_id,category_1,category_2,rank,task_id\none,Food,Drinks,1,7\n",
    "task_ids.csv": "7\tMake Tea\n8\tMake Soup\n",
}
ARTICLES = {
    "articles.jsonl": '{"title": "Make Tea", "steps": ["Boil water", "Pour"]}\n'
    '{"title": "Make Soup", "steps": ["Chop"]}\n'
}
KINDS = {
    "CrossTask": CROSSTASK,
    "COIN": COIN,
    "HowTo100M": HOWTO100M,
    "WikiHow articles": ARTICLES,
}


def write(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, "utf-8")
    return folder


def without(files, *names):
    return {name: text for name, text in files.items() if not name.startswith(names)}


# --- Each kind


@pytest.mark.parametrize("name", KINDS)
def test_a_complete_data_set_is_found_and_lacks_nothing(tmp_path, name):
    [found] = survey(write(tmp_path, KINDS[name]))

    assert (found.name, found.missing) == (name, ())


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("CrossTask", {"tasks": 1, "unique_keysteps": 2, "annotated_videos": 2}),
        ("COIN", {"videos": 2, "tasks": 1, "unique_keysteps": 2, "narrated_videos": 2}),
        ("HowTo100M", {"videos": 2, "tasks": 2}),
        ("WikiHow articles", {"articles": 2, "steps": 3}),
    ],
)
def test_what_a_data_set_holds_is_counted(tmp_path, name, counts):
    [found] = survey(write(tmp_path, KINDS[name]))

    assert counts.items() <= found.counts.items()


@pytest.mark.parametrize("name", ["CrossTask", "COIN", "HowTo100M"])
def test_a_source_that_was_found_can_be_opened(tmp_path, name):
    [found] = survey(write(tmp_path, KINDS[name]))

    assert [video.id for video in open_source(found.source).videos] == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wikihowAll.csv", 'headline,title,text\n"Boil\nPour",How to Make Tea,prose\n'),
        (
            "wikihowSep.csv",
            "overview,headline,text,sectionLabel,title\n,Boil,x,Steps,Tea\n,Pour,x,Steps,Tea\n",
        ),
    ],
)
def test_the_published_files_of_articles_are_found(tmp_path, name, text):
    [found] = survey(write(tmp_path, {name: text}))

    assert found.source == f"articles:{tmp_path / name}"
    assert found.counts == {"articles": 1, "steps": 2}


def test_captions_without_stop_words_will_do(tmp_path):
    files = without(HOWTO100M, "raw") | {"caption.json": HOWTO100M["raw_caption.json"]}

    [found] = survey(write(tmp_path, files))

    assert found.counts == {"videos": 2, "tasks": 2}


def test_broken_records_are_counted(tmp_path):
    broken = json.dumps({"one": SAID, "two": SAID | {"end": []}, "three": SAID})

    [found] = survey(write(tmp_path, HOWTO100M | {"raw_caption.json": broken}))

    assert found.counts == {"videos": 2, "tasks": 2, "problems": 1}


def test_a_find_is_plain_values_in_json(tmp_path):
    [found] = survey(write(tmp_path, without(CROSSTASK, "videos_val")))

    content = json.loads(json.dumps(found._asdict()))

    assert set(content) == {"name", "source", "counts", "missing"}
    assert content["counts"] == found.counts
    assert content["missing"] == list(found.missing)


# --- What is missing


@pytest.mark.parametrize("part", ["tasks_related.txt", "videos.csv", "videos_val.csv"])
def test_missing_files_of_crosstask_are_named_with_where_they_are_published(tmp_path, part):
    [found] = survey(write(tmp_path, without(CROSSTASK, part)))

    [missing] = found.missing
    assert missing == f"{part}: in the CrossTask release on GitHub (DmZhukov/CrossTask)"


def test_missing_annotations_of_crosstask_are_named(tmp_path):
    [found] = survey(write(tmp_path, without(CROSSTASK, "annotations")))

    assert [one.partition(":")[0] for one in found.missing] == ["annotations"]
    assert found.counts["annotated_videos"] == 0


@pytest.mark.parametrize(("kept", "lost"), [("narration/one.vtt", 1), ("nothing", 2)])
def test_missing_narration_of_crosstask_is_counted_with_where_to_put_it(tmp_path, kept, lost):
    files = without(CROSSTASK, "narration")
    files |= {kept: VTT} if kept in CROSSTASK else {}

    [found] = survey(write(tmp_path, files))

    assert found.missing == (
        f"narration of {lost} annotated videos: not published; "
        f"put transcripts into {tmp_path / 'narration'}",
    )


def test_narration_of_other_videos_does_not_make_up_for_that_of_annotated_ones(tmp_path):
    files = without(CROSSTASK, "narration") | {
        "videos.csv": "111,one,u\n111,two,u\n111,three,u\n111,four,u\n",
        "narration/three.vtt": VTT,
        "narration/four.vtt": VTT,
    }

    [found] = survey(write(tmp_path, files))

    assert [one.partition(":")[0] for one in found.missing] == ["narration of 2 annotated videos"]


@pytest.mark.parametrize(("lost", "count"), [("narration/one", 1), ("narration", 2)])
def test_missing_narration_of_coin_is_counted_with_where_to_put_it(tmp_path, lost, count):
    [found] = survey(write(tmp_path, without(COIN, lost)))

    assert found.missing == (
        f"narration of {count} videos: not published; "
        f"put transcripts into {tmp_path / 'narration'}",
    )


@pytest.mark.parametrize("part", ["HowTo100M_v1.csv", "task_ids.csv"])
def test_missing_files_of_howto100m_are_named_and_its_videos_counted(tmp_path, part):
    [found] = survey(write(tmp_path, without(HOWTO100M, part)))

    [missing] = found.missing
    assert missing.startswith(f"{part}: on the HowTo100M project page (www.di.ens.fr/")
    assert found.counts == {"videos": 2}


# --- Where it is looked for


def test_all_kinds_in_one_folder_are_found(tmp_path):
    for files in KINDS.values():
        write(tmp_path, files)

    assert [found.name for found in survey(tmp_path)] == list(KINDS)


@pytest.mark.parametrize("place", [".", "a", "a/b"])
def test_a_data_set_may_lie_two_folders_deep(tmp_path, place):
    write(tmp_path / place, COIN)

    [found] = survey(tmp_path)

    assert found.source == f"coin:{tmp_path / place}"


@pytest.mark.parametrize("place", ["a/b/c", ".hidden", "a/.hidden"])
def test_deeper_and_hidden_folders_are_not_searched(tmp_path, place):
    write(tmp_path / place, COIN)

    with pytest.raises(DataError, match="got none of them"):
        survey(tmp_path)


def test_data_sets_side_by_side_are_found_in_the_order_of_their_folders(tmp_path):
    for place, files in [("c", COIN), ("a", HOWTO100M), ("b/b", ARTICLES), ("b", CROSSTASK)]:
        write(tmp_path / place, files)

    found = [one.name for one in survey(tmp_path)]

    assert found == ["HowTo100M", "CrossTask", "WikiHow articles", "COIN"]


def test_a_folder_with_nothing_in_it_is_refused_with_what_is_looked_for(tmp_path):
    with pytest.raises(DataError, match=r"must contain CrossTask .*COIN.*HowTo100M.*got none of"):
        survey(tmp_path)


@pytest.mark.parametrize("place", ["nowhere", "file.txt"])
def test_what_is_no_folder_is_refused(tmp_path, place):
    write(tmp_path, {"file.txt": "text"})

    with pytest.raises(DataError, match=rf"{place}: must be a folder, got none; check the path"):
        survey(tmp_path / place)


@pytest.mark.parametrize("text", ["", "not JSON\n", '{"other": 1}\n', '{"title": "x"}\n', "\0"])
def test_other_files_of_json_lines_are_passed_over(tmp_path, text):
    write(tmp_path, ARTICLES | {"other.jsonl": text})

    assert [found.name for found in survey(tmp_path)] == ["WikiHow articles"]


def test_folders_with_the_names_of_files_are_no_data_sets(tmp_path):
    for name in ("COIN.json", "tasks_primary.txt", "raw_caption.json", "a.jsonl"):
        (tmp_path / name).mkdir()

    with pytest.raises(DataError, match="got none of them"):
        survey(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("broken/COIN.json", "{"),
        ("broken/tasks_primary.txt", "\n"),
        ("broken/caption.json", '{"images": [], "annotations": []}'),  # of another project
        ("broken/wikihowAll.csv", "nothing of the kind"),
    ],
)
def test_a_broken_data_set_does_not_hide_the_others(tmp_path, name, text):
    write(tmp_path / "sound", ARTICLES)
    write(tmp_path, {name: text})

    assert "WikiHow articles" in [found.name for found in survey(tmp_path)]


# --- A folder too high or too deep


@pytest.mark.parametrize("name", ["CrossTask", "COIN", "HowTo100M"])
@pytest.mark.parametrize("place", ["{prefix}", "data", "data/{prefix}"])
def test_a_folder_too_high_is_answered_with_where_to_point(tmp_path, name, place):
    prefix = name.lower()
    right = write(tmp_path / place.format(prefix=prefix), KINDS[name])

    asked = rf"^{tmp_path}: must be the folder of {name}, which contains .*, got no such file; "
    with pytest.raises(DataError, match=rf"{asked}did you mean {prefix}:{right}\?$"):
        open_source(f"{prefix}:{tmp_path}")
    with pytest.raises(DataError, match=rf"did you mean {prefix}:{right}\?$"):
        build_vocabulary(f"{prefix}:{tmp_path}")


def test_a_folder_too_deep_is_answered_with_where_to_point(tmp_path):
    write(tmp_path, CROSSTASK)

    with pytest.raises(
        DataError, match=rf"annotations: must .* did you mean crosstask:{tmp_path}\?"
    ):
        open_source(f"crosstask:{tmp_path / 'annotations'}")


@pytest.mark.parametrize(("place", "got"), [(".", "no such file"), ("gone", "no such folder")])
def test_where_no_data_set_is_near_none_is_named(tmp_path, place, got):
    with pytest.raises(DataError, match=rf"contains COIN\.json, got {got}; check the path$"):
        open_source(f"coin:{tmp_path / place}")


# --- Adding a data set


def test_a_data_set_is_its_module_and_a_line_in_the_registry(tmp_path, monkeypatch):
    (tmp_path / "toy.py").write_text(
        "from stepgraph.core import Dataset, Video, Vocabulary\n"
        "from stepgraph.datasets import Published\n"
        "words = Vocabulary(('boil', 'pour'))\n"
        "videos = (Video('one', 1.0), Video('two', 2.0))\n"
        "def opened(path, how): return Dataset('toy', videos, words)\n"
        "def keysteps(path, problems): return words\n"
        "def counted(path): return {'videos': 2}, ()\n"
        "PUBLISHED = Published('Toy', ('toy.txt',), opened, counted, keysteps)\n"
    )
    (tmp_path / "toy.txt").write_text("toy")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(REGISTRY, "toy", "toy")

    assert [video.id for video in open_source(f"toy:{tmp_path}").videos] == ["one", "two"]
    assert build_vocabulary(f"toy:{tmp_path}").keysteps == ("boil", "pour")
    assert [one.source for one in survey(tmp_path)] == [f"toy:{tmp_path}"]
    with pytest.raises(ConfigError, match="split of toy must be one of 'all', got 'train'"):
        open_source(f"toy:{tmp_path}", split="train")


@pytest.mark.data
@pytest.mark.slow
def test_the_published_data_sets_are_found(real_data):
    found = {one.name: one for one in survey(real_data)}

    assert {"CrossTask", "COIN"} <= set(found)
    assert found["CrossTask"].counts["tasks"] == 18
    assert found["COIN"].counts["videos"] == 11006
