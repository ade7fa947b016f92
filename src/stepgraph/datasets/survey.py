"""Say which data sets lie in a folder, what they hold, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from stepgraph.datasets.coin import survey_coin
from stepgraph.datasets.crosstask import annotated_without_narration, survey_crosstask
from stepgraph.datasets.howto100m import CAPTION_FILES, TASKS_FILE, VIDEOS_FILE, read_tasks
from stepgraph.datasets.howto100m_captions import read_captions
from stepgraph.errors import DataError, StepgraphError
from stepgraph.problems import Problems
from stepgraph.progress import track
from stepgraph.vocabulary import Article, read_articles

# How deep below the given folder a data set may lie.
_DEPTH = 2


@dataclass(frozen=True)
class Found:
    """A data set in a folder.

    Attributes
    ----------
    source
        What to pass to other verbs, such as ``crosstask:data/crosstask``.
    counts
        What it holds, by name.
    missing
        What it lacks, in words, with where its authors publish it.
    """

    name: str
    source: str
    counts: Mapping[str, int]
    missing: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return asdict(self)


def survey(folder: Path) -> list[Found]:
    """Recognise the data sets in a folder and the folders below it."""
    if not folder.is_dir():
        raise DataError(f"{folder}: must be a folder, got none; check the path")
    found = [one for place in _places(folder) for look in _KINDS for one in _tried(look, place)]
    if not found:
        raise DataError(
            f"{folder}: must contain CrossTask (tasks_primary.txt), COIN (COIN.json), HowTo100M "
            f"(raw_caption.json) or WikiHow articles (.jsonl, wikihowAll.csv), got none of them"
        )
    return found


def _tried(look: Callable[[Path], Iterator[Found]], place: Path) -> Iterator[Found]:
    """What a look finds; a broken data set is named with its error, and hides no other."""
    try:
        yield from look(place)
    except StepgraphError as error:
        name = look.__name__.strip("_")
        yield Found(f"{name} (broken)", f"{name}:{place}", {}, (str(error),))


def _places(folder: Path, depth: int = _DEPTH) -> Iterator[Path]:
    yield folder
    if depth:
        for below in sorted(folder.iterdir()):
            if below.is_dir() and not below.name.startswith("."):
                yield from _places(below, depth - 1)


def _crosstask(place: Path) -> Iterator[Found]:
    if (place / "tasks_primary.txt").is_file():
        where = "the CrossTask release on GitHub (DmZhukov/CrossTask)"
        parts = ("tasks_related.txt", "videos.csv", "videos_val.csv", "annotations")
        missing = [f"{part}: in {where}" for part in parts if not (place / part).exists()]
        counts = survey_crosstask(place)
        silent = annotated_without_narration(place)
        if silent:
            missing.append(
                f"narration of {silent:,} annotated videos: not published; "
                f"put transcripts into {place / 'narration'}"
            )
        yield Found("CrossTask", f"crosstask:{place}", counts, tuple(missing))


def _coin(place: Path) -> Iterator[Found]:
    if (place / "COIN.json").is_file():
        counts = survey_coin(place)
        missing = []
        if counts["narrated_videos"] < counts["videos"]:
            missing.append(
                f"narration of {counts['videos'] - counts['narrated_videos']:,} videos: "
                f"not published; put transcripts into {place / 'narration'}"
            )
        yield Found("COIN", f"coin:{place}", counts, tuple(missing))


def _howto100m(place: Path) -> Iterator[Found]:
    captions = [place / name for name in CAPTION_FILES if (place / name).is_file()]
    if captions or (place / VIDEOS_FILE).is_file():
        where = "the HowTo100M project page (www.di.ens.fr/willow/research/howto100m)"
        parts = (VIDEOS_FILE, TASKS_FILE)
        missing = [f"{part}: on {where}" for part in parts if not (place / part).is_file()]
        problems = Problems()
        counts = {"videos": 0}
        if captions:
            stream = track(read_captions(captions[0], problems=problems), "counting captions")
            counts = {"videos": sum(1 for _ in stream)}
        else:
            missing.append(f"{CAPTION_FILES[0]}: on {where}")
        if not missing:
            counts["tasks"] = len(read_tasks(place, problems))
        if problems:
            counts["problems"] = len(problems)
        yield Found("HowTo100M", f"howto100m:{place}", counts, tuple(missing))


def _articles(place: Path) -> Iterator[Found]:
    names = ("wikihowAll.csv", "wikihowSep.csv")
    for path in sorted(place.glob("*.jsonl")) + [place / name for name in names]:
        try:
            steps = [len(article.steps) for article in _read(path)]
        except StepgraphError:
            continue  # some other JSON lines
        if steps:
            counts = {"articles": len(steps), "steps": sum(steps)}
            yield Found("WikiHow articles", f"articles:{path}", counts, ())


def _read(path: Path) -> Iterator[Article]:
    return read_articles(path, problems=Problems()) if path.is_file() else iter(())


_KINDS: tuple[Callable[[Path], Iterator[Found]], ...] = (_crosstask, _coin, _howto100m, _articles)
