"""Verbs for lists of keysteps: propose one, take one from articles, check one."""

from __future__ import annotations

import argparse
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from stepgraph.cli import arguments
from stepgraph.errors import one_line
from stepgraph.export.terminal import plural
from stepgraph.files.disk import write_text
from stepgraph.pipeline.articles import as_list, find_articles, require_steps
from stepgraph.pipeline.checking import Check, Finding, check_steps
from stepgraph.pipeline.suggesting import suggest_steps
from stepgraph.problems import Problems
from stepgraph.vocabulary.suggested import SuggestedTask, SuggestedVocabulary, SuggestOptions

# Below this share of a task's videos with the most frequent step, it may be several tasks.
_SHARED = 0.2


def suggest(args: argparse.Namespace) -> str:
    """Propose the steps that recur across narrated videos, as a list (steps.txt) to be edited."""
    arguments.must_be_new(args)
    problems, dataset = Problems(strict=args.strict), arguments.open_dataset(args)
    options = arguments.given_fields(args, SuggestOptions)
    proposed = suggest_steps(dataset, screen=args.screen, problems=problems, **options)
    write_text(args.output, proposed.to_text())
    answer = arguments.render(
        args, _proposal(proposed, args), file=str(args.output), **proposed.to_json()
    )
    return arguments.conclude(answer, args, dataset.problems, problems)


def _proposal(proposed: SuggestedVocabulary, args: argparse.Namespace) -> str:
    lines = []
    for task in proposed.tasks:
        lines.append(f"{task.name} ({plural(len(task.videos), 'video')})")
        for step in task.steps:
            optional = ", optional" if step.optional else ""
            lines.append(f"  {step.name}  (in {plural(step.videos, 'video')}{optional})")
    steps = sum(len(task.steps) for task in proposed.tasks)
    next_one = one_line(shlex.join(["stepgraph", "steps", "check", str(args.output), args.source]))
    lines.append(
        f"\n{args.output}: {plural(steps, 'step')} of {plural(len(proposed.tasks), 'task')}, with "
        f"notes from the narration; edit it, then run: {next_one}"
    )
    if "tasks" not in args:  # the hint is only for users who did not choose the number
        lines += [_doubt(task) for task in proposed.tasks if _hardly_shared(task)]
    if proposed.unassigned:
        lines.append(f"No step recurs in {plural(len(proposed.unassigned), 'other video')}.")
    return "\n".join(lines)


def _hardly_shared(task: SuggestedTask) -> bool:
    most = max(step.videos for step in task.steps)
    return most < _SHARED * len(task.videos)


def _doubt(task: SuggestedTask) -> str:
    return (
        f"No step of {one_line(task.name)!r} occurs in a fifth of its {len(task.videos)} videos. "
        f"If they show several tasks, pass their number: --tasks N"
    )


def from_article(args: argparse.Namespace) -> str:
    """Take the steps of the articles whose titles match a question."""
    if args.output:
        arguments.must_be_new(args)
    question, problems = " ".join(args.question), Problems(strict=args.strict)
    found = find_articles(question, args.articles, top=args.top, problems=problems)
    text = require_steps(as_list(found, args.max_steps), question)
    if args.output:
        write_text(args.output, text)
    articles: list[dict[str, Any]] = [
        {"title": one.article.title, "score": round(one.score, 3), "steps": one.article.steps}
        for one in found
    ]
    return arguments.conclude(
        arguments.render(args, text.rstrip("\n"), articles=articles), args, problems
    )


def check(args: argparse.Namespace) -> str:
    """Check a list against videos: unmentioned, missing, duplicate and misordered steps."""
    problems, dataset = Problems(strict=args.strict), arguments.open_dataset(args)
    options = {"min_videos": args.min_videos}
    found = check_steps(args.steps, dataset, problems=problems, **options)
    answer = arguments.render(
        args,
        _findings(found),
        videos=found.videos,
        findings=[
            one._asdict() | {"examples": [mention._asdict() for mention in one.examples]}
            for one in found.findings
        ],
    )
    return arguments.conclude(answer, args, dataset.problems, problems)


def _findings(found: Check) -> str:
    lines = []
    for task, videos in found.videos.items():
        lines.append(f"{task} ({plural(videos, 'video')})")
        own = [*_sentences([one for one in found.findings if one.task == task])]
        lines += [f"  {one_line(line)}" for line in own]
        if not own:
            lines.append("  no finding" if videos else "  no video shows it")
    return "\n".join(lines)


def _sentences(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield sentences on single steps, then on pairs; pairs that share a step are merged."""
    for one in findings:
        if one.kind not in ("order", "duplicate"):
            yield _sentence(one)
    for step, own in _shared(one for one in findings if one.kind == "order"):
        late, early = ([one for one in own if one.keysteps[side] == step] for side in (0, 1))
        if late:
            yield f"order: {step} is listed before {_others(late, step)}, but done after"
        if early:
            yield f"order: {step} is listed after {_others(early, step)}, but done before"
    for step, own in _shared(one for one in findings if one.kind == "duplicate"):
        yield f"duplicate: {step} matches the same sentences as {_others(own, step)}"


def _shared(pairs: Iterable[Finding]) -> Iterator[tuple[str, list[Finding]]]:
    """Yield each pair once, under one of its steps: the step of most pairs first."""
    left = list(pairs)
    while left:
        [(step, _)] = Counter(name for one in left for name in one.keysteps).most_common(1)
        yield step, [one for one in left if step in one.keysteps]
        left = [one for one in left if step not in one.keysteps]


def _others(pairs: Sequence[Finding], step: str) -> str:
    return ", ".join(
        f"{one.keysteps[one.keysteps[0] == step]} ({one.videos} of {one.of} videos)"
        for one in pairs
    )


def _sentence(one: Finding) -> str:
    share = f"{one.videos} of {one.of} videos"
    if one.kind == "unrelated":
        return "no step matches what these videos often mention; is the list of another task?"
    if one.kind == "unmentioned":
        return f"unmentioned: {one.keysteps[0]} (among the best matches in {share})"
    mention = f", such as: {one.examples[0].text}" if one.examples else ""
    return f"missing: {one.keysteps[0]} (in {share}{mention})"
