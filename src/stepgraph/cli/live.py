"""Verbs for live recognition: live, and demo --live."""

from __future__ import annotations

import argparse
import json
import sys
import time
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Event, Thread
from typing import Any

from stepgraph import progress
from stepgraph.assistant.live import Live, LiveOptions, OnlineState
from stepgraph.assistant.live_model import OnlineModel
from stepgraph.assistant.live_reading import ArrivedSentence, LineParser, arriving, read_live
from stepgraph.assistant.live_sound import listen_live
from stepgraph.cli import arguments
from stepgraph.core import Video
from stepgraph.datasets import open_source
from stepgraph.decoders import TaskMarkov
from stepgraph.decoders.learning import learn_graph
from stepgraph.encoders import load_encoder
from stepgraph.encoders.text import TextEncoder
from stepgraph.errors import ConfigError, DataError, printable
from stepgraph.export.terminal import percent, plural
from stepgraph.export.timeline import on_one_line, short_clock
from stepgraph.files.disk import require_file
from stepgraph.graph import TaskGraph
from stepgraph.graph.saving import load_graph
from stepgraph.pipeline import open_scorer
from stepgraph.problems import Problems
from stepgraph.scoring import score
from stepgraph.viewer.live import LiveServer, Stage

# The embeddings of so many videos are computed before the first sentence, in a few seconds; of
# larger graphs, those of a task when it first leads.
_PREPARED = 5000
# Seconds that the demo takes on a terminal, and the narration that it plays.
_DEMO, _PLAYED = 20.0, "pancakes-2"


def live(args: argparse.Namespace) -> str:
    """Show the current keystep, the next steps and missing steps while somebody speaks."""
    options = LiveOptions(**arguments.given_fields(args, LiveOptions))
    online, problems = Live(_model(load_graph(args.graph)), options), Problems()
    with progress.hidden(), ExitStack() as opened:
        arrived = _arrivals(args, opened, problems)
        show = opened.enter_context(_serving(args)) if args.serve else _printing(args)
        count = 0
        with suppress(KeyboardInterrupt):
            for state in _changes(_states(online, arrived)):
                show(state)
                count += 1
            if args.serve:
                show(None)
                Event().wait()
    if not count:
        found = f": {problems.summary()}" if problems else ""
        origin = args.transcript or args.listen
        raise DataError(f"{origin}: must hold at least a second of narration, got none{found}")
    args.skip_bad = True  # a skipped line is reported, and loses nothing else
    answer = _answer(
        args, f"{plural(count, 'change')} shown", changes=count, problems=len(problems)
    )
    return arguments.conclude(answer, args, problems)


def _arrivals(
    args: argparse.Namespace, opened: ExitStack, problems: Problems
) -> Iterator[ArrivedSentence | float]:
    """Yield sentences or times as they arrive, from a transcript or from sound."""
    path = args.transcript or args.listen
    stream: Any = sys.stdin.buffer
    if str(path) != "-":
        require_file(path, "transcript file" if args.transcript else "sound file")
        stream = opened.enter_context(path.open("rb"))
    if args.listen:
        return listen_live(stream, str(path), follow=args.follow)
    fixed = stream is not sys.stdin.buffer and not args.follow
    lines = arriving(stream, follow=args.follow)
    return read_live(lines, LineParser(str(path), problems), must_be_timed=fixed)


def _model(graph: TaskGraph) -> OnlineModel:
    scorer = open_scorer(graph=graph)
    if not isinstance(scorer, TextEncoder):
        raise ConfigError(
            "graph must be mined from narration for live recognition, got one mined with "
            "another encoder; mine it with --encoder text:minilm"
        )
    model = OnlineModel.of_graph(graph, scorer)
    if graph.statistics is None or sum(graph.statistics.videos.values()) <= _PREPARED:
        model.prepare()
    return model


def _states(live: Live, arrived: Iterable[ArrivedSentence | float]) -> Iterator[OnlineState]:
    """Yield states as they are emitted, to the end of the input."""
    for one in arrived:
        if isinstance(one, ArrivedSentence):
            yield from live.feed(one.now, [one.sentence])
        else:
            yield from live.feed(one)
    yield from live.finish()


def _changes(states: Iterable[OnlineState]) -> Iterator[OnlineState]:
    """Yield the states whose task, keystep or missing steps differ from the state before."""
    before: Any = None
    for state in states:
        current = state.task, state.keystep, [one.keystep for one in state.missing]
        if current != before:
            yield state
        before = current


def _answer(args: argparse.Namespace, text: str, **content: Any) -> str:
    """Render the last line; in JSON it is one object like all others."""
    return json.dumps(content) if args.json else text


def _printing(args: argparse.Namespace) -> Callable[[OnlineState | None], None]:
    def show(state: OnlineState | None) -> None:
        assert state is not None, "only a page shows the end"
        line = json.dumps(state.to_json(), ensure_ascii=False) if args.json else _line(state)
        print(printable(line), flush=True)

    return show


@contextmanager
def _serving(args: argparse.Namespace) -> Iterator[Callable[[OnlineState | None], None]]:
    """Show states in a browser; None marks the end, and the last state stays."""
    stage = Stage()

    def show(state: OnlineState | None) -> None:
        stage.finish() if state is None else stage.show(state.to_json())

    with LiveServer(stage, args.port) as server:
        print(f"{server.address}\nOnly this computer can see it. Stop it with Ctrl+C.", flush=True)
        Thread(target=server.serve_forever, daemon=True).start()
        if args.open:
            webbrowser.open(server.address)
        try:
            yield show
        finally:
            stage.finish()
            server.shutdown()


def _line(state: OnlineState) -> str:
    """Format a state as one line."""
    if state.task is None:
        return f"{short_clock(state.at):>7}  Waiting for the task …"
    doing = "–" if state.keystep is None else _sure(state.keystep, state.confidence)
    task = _sure(state.task, state.tasks[state.task])
    parts = [f"{short_clock(state.at):>7}  {task}: {doing}"]
    for name in ("next", "missing"):
        likely = getattr(state, name)[:3]
        if likely:
            parts.append(f"{name}: {', '.join(_sure(*one) for one in likely)}")
    return on_one_line("  |  ".join(parts))


def _sure(name: str, probability: float) -> str:
    return f"{name} ({percent(probability)} %)"


def demo_live(args: argparse.Namespace) -> str:
    """Play a narration of the embedded corpus, and recognise it as if it were live."""
    corpus, encoder = open_source("demo"), load_encoder(TaskMarkov.encoder)
    assert corpus.vocabulary is not None, "the demo has a vocabulary"
    scores = score(corpus.videos, corpus.vocabulary, encoder)
    graph = learn_graph(scores, corpus.vocabulary, encoder=encoder.options)
    [video] = [one for one in corpus.videos if one.id == _PLAYED]
    live = Live(_model(graph))
    with progress.hidden():
        if sys.stdout.isatty() and not args.json:
            late, fast = round(LiveOptions.delay), round(video.duration / _DEMO)
            print(f"This is a narration, played {fast} times as fast as it was spoken.")
            print(f"Each second gets its keystep {late} seconds of narration later.\n")
            with _watching() as draw:
                for state, current in _played(live, video, _DEMO / video.duration):
                    draw(state, current)
        else:
            if not args.json:
                print("One line for each change: time, task: keystep, next steps, missing steps.")
                print("Probabilities are in brackets.\n")
            show = _printing(args)
            for state in _changes(state for state, _ in _played(live, video)):
                show(state)
    names, done = corpus.vocabulary.keysteps, set(corpus.truth[video.id].keysteps.tolist())
    absent = [names[one] for one in corpus.vocabulary.tasks[str(video.task)] if one not in done]
    long = short_clock(video.duration)
    text = (
        f"That was {video.id}, {long} of narration. Its truth, which was not used, lacks: "
        f"{', '.join(absent)}.\nFor your own narration: stepgraph live --help"
    )
    return _answer(args, text, media=video.id, seconds=video.duration, missing=absent)


def _played(live: Live, video: Video, pause: float = 0.0) -> Iterator[tuple[OnlineState, str]]:
    """Yield each state of a video and the latest sentence; each second takes a pause."""
    current, waiting = "", list(video.transcript)
    for second in range(1, int(video.duration) + 1):
        arrived = [one for one in waiting if one.end <= second]
        waiting = waiting[len(arrived) :]
        current = arrived[-1].text if arrived else current
        for state in live.feed(second, arrived):
            yield state, current
        time.sleep(pause)
    for state in live.finish():
        yield state, current


@contextmanager
def _watching() -> Iterator[Callable[[OnlineState, str], None]]:
    """Draw states over one another on a terminal."""
    from rich.live import Live as Screen
    from rich.table import Table

    def draw(state: OnlineState, current: str) -> Any:
        table = Table.grid(padding=(0, 2))
        over = round(30 * state.progress)
        rows = {
            "speech": f"{short_clock(state.now)}  {current}",
            "task": "–" if state.task is None else _sure(state.task, state.tasks[state.task]),
            "keystep": f"{short_clock(state.at)}  {state.keystep or '–'}",
            "progress": f"{'#' * over}{'.' * (30 - over)} {percent(state.progress)} %",
        }
        for name, text in rows.items():
            table.add_row(name, printable(on_one_line(text)))
        for name in ("next", "missing"):
            likely = [printable(on_one_line(_sure(*one))) for one in getattr(state, name)[:3]]
            table.add_row(name, "\n".join(likely or ["–"]))
        return table

    with Screen(auto_refresh=False, transient=False) as screen:
        yield lambda state, current: screen.update(draw(state, current), refresh=True)
