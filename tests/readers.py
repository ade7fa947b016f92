"""What libraries of others read in exported results: ``python tests/readers.py FOLDER``.

These libraries do not go into the environment of the tests: label-studio-sdk wants another OpenCV
than reading text in pictures does, and pm4py is under the AGPL.  So this file imports nothing of
ours, and runs in an environment of its own (``make readers``).  The steps that every
library finds must be those of the ``.steps.csv`` files.
"""

import csv
import json
import re
import sys
import tempfile
from pathlib import Path


def written(folder):
    """(video, start, end, keystep) of all chapters."""
    steps = []
    for path in sorted(folder.rglob("*.steps.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            steps += [
                (one["video"], float(one["start"]), float(one["end"]), one["keystep"])
                for one in csv.DictReader(file)
            ]
    return steps


def label_studio(folder):
    """Label Studio's own checks of the interface, the tasks and the predictions."""
    from label_studio_sdk.label_interface import LabelInterface

    interface = LabelInterface((folder / "label-studio.xml").read_text("utf-8"))
    interface.validate()
    steps = []
    for task in json.loads((folder / "label-studio.json").read_text("utf-8")):
        # Its check of a task with predictions calls another without what is to be checked.
        assert interface.validate_task({"data": task["data"]}), task["data"]
        for prediction in task["predictions"]:
            assert interface.validate_prediction(prediction, return_errors=True) == []
            for region in prediction["result"]:
                [times], [name] = region["value"]["ranges"], region["value"]["timelinelabels"]
                steps.append(((times["start"] - 1) / 25, times["end"] / 25, name))
    return steps


def activitynet(folder):
    from labelformat.formats.activitynet import ActivityNetTemporalClassificationInput

    found = ActivityNetTemporalClassificationInput(folder / "activitynet.json")
    return [
        (event.start_time_s, event.end_time_s, event.category.name)
        for video in found.get_labels()
        for event in video.events
    ]


def xes(folder):
    import pm4py

    log = pm4py.read_xes(str(folder / "keysteps.xes"))
    times = [one.timestamp() for one in log["time:timestamp"]]
    assert log["lifecycle:transition"].tolist() == ["start", "complete"] * (len(log) // 2)
    return list(zip(times[::2], times[1::2], log["concept:name"].tolist()[::2], strict=True))


def youtube(folder):
    """Chapters that yt-dlp finds in a description as YouTube does; they name every step."""
    import yt_dlp
    from yt_dlp.extractor.common import InfoExtractor

    reader = InfoExtractor(yt_dlp.YoutubeDL({"quiet": True}))
    steps = written(folder)
    for path in sorted(folder.rglob("*.chapters.txt")):
        text = path.read_text("utf-8")
        found = reader._extract_chapters_from_description(text, 360_000)
        assert len(found) == len(text.splitlines()), path
        video = str(path.relative_to(folder)).removesuffix(".chapters.txt")
        for _, start, _, keystep in (one for one in steps if one[0] == video):
            [*_, title] = [one["title"] for one in found if one["start_time"] <= start]
            assert keystep in title or " more" in title, (path, start, keystep)
    return len(steps)


def cvat(folder):
    """Stretches of pictures with the same tag, as datumaro reads them."""
    from datumaro.components.annotation import AnnotationType
    from datumaro.components.dataset import Dataset

    steps = []
    for path in sorted(folder.rglob("*.cvat.xml")):
        text = path.read_text("utf-8")
        with tempfile.TemporaryDirectory() as place:
            # It wants the pictures, too, of which it reads nothing.
            Path(place, "images").mkdir()
            for name in re.findall(r'name="(frame_\d+)"', text):
                Path(place, "images", name).touch()
            Path(place, "annotations.xml").write_text(text, "utf-8")
            found = Dataset.import_from(f"{place}/annotations.xml", "cvat")
            names = found.categories()[AnnotationType.label]
            last = None
            for item in found:
                frame = item.attributes["frame"]
                for one in item.annotations:
                    if last != (frame - 1, one.label):
                        steps.append(names[one.label].name)
                    last = (frame, one.label)
    return steps


def main(folder):
    wanted = written(folder)
    assert wanted, f"{folder} must hold .steps.csv files"
    for read in (label_studio, activitynet, xes):
        found = read(folder)
        assert len(found) == len(wanted), read.__name__
        for (start, end, name), (video, *times, keystep) in zip(found, wanted, strict=True):
            assert name == keystep, (read.__name__, video, name, keystep)
            # A picture is a 25th of a second.
            assert max(abs(start - times[0]), abs(end - times[1])) <= 0.04, (read.__name__, video)
        print(f"{read.__name__}: {len(found)} steps")
    if any(folder.rglob("*.chapters.txt")):
        print(f"youtube: {youtube(folder)} steps")
    if tags := cvat(folder):
        assert tags == [one[3] for one in wanted]
        print(f"cvat: {len(tags)} steps")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
