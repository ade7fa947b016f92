"""What is said under a table: how it was measured, and what the paper's columns are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepgraph.experiments import paper
from stepgraph.experiments.methods import TABLES, Method
from stepgraph.experiments.setting import Setting


def written_notes(table: str, **values: object) -> list[str]:
    """What ``tables.toml`` says under a table, with the values filled in."""
    return [note.format(**values) for note in TABLES["notes"][table]]


def protocol(setting: Setting, used: Sequence[Method]) -> Iterator[str]:
    """How the table was measured, sentence by sentence."""
    options, truth = setting.options, setting.truth
    videos = [one for one in setting.scored("text") if one.video in truth]
    rows = sum(map(len, videos))
    labelled = sum(int((truth[one.video].keysteps >= 0).sum()) for one in videos)
    tasks = {setting.tasks[one.video] for one in videos if one.video in setting.tasks}
    yield (
        f"Measured here: {setting.dataset.name} (split: {options.split}), {len(videos)} videos of "
        f"{_tasks_in_words(tasks, setting)}, {rows:,} rows of a second, {labelled:,} of them with "
        f"a true keystep."
    )
    unknown = sum(one.video not in setting.tasks for one in videos)
    if unknown and any(method.task_level for method in used):
        yield f"The task of {unknown} videos is unknown; they are left out."
    yield (
        f"Vocabulary: {len(setting.vocabulary)} keysteps of {len(setting.vocabulary.tasks)} tasks "
        f"(fingerprint {setting.vocabulary.fingerprint}). Encoder: {setting.encoder.name}, "
        f"{setting.encoder.context} sentences of context"
        f"{', with task names' if setting.encoder.task_names else ''}. Seed {options.seed}."
    )
    if "video" in options.scores:
        yield f"Video scores: {options.video_scores}; threshold {options.video_threshold:g}."
    for modality in setting.scores:
        yield f"Graph ({modality}) mined {setting.mined_where(modality)}."
    for method in used:
        if method.about:
            yield f"{method.name}: {method.described(setting)}."


def errors_note(setting: Setting) -> str:
    """How standard errors came about."""
    options = setting.options
    videos = sum(1 for _ in setting.evaluated("text"))
    return (
        f"± measured here: standard error of the mean over {min(options.parts, videos)} random "
        f"parts of the videos (seed {options.seed}), with the graph of all of them."
    )


def _tasks_in_words(tasks: set[str], setting: Setting) -> str:
    if not tasks:
        return "unknown tasks"
    named = f" ({', '.join(sorted(tasks))})" if len(tasks) <= 3 else ""
    return f"{len(tasks)} of {len(setting.vocabulary.tasks)} tasks{named}"


def paper_notes(datasets: Sequence[str]) -> Iterator[str]:
    """What to bear in mind about the paper's columns."""
    if not datasets:
        return
    named = " and ".join(paper.DATASETS[dataset] for dataset in datasets)
    yield (
        f"Paper: as printed there, on all its videos of {named} and with its own encoders; for "
        f"orientation, not for comparison."
    )
