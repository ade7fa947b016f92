from dataclasses import fields, replace

import pytest

from stepgraph import experiments
from stepgraph.decoders import Argmax
from stepgraph.errors import DataError
from stepgraph.experiments import methods, plans, run_table
from stepgraph.experiments.plans import PLANS
from stepgraph.experiments.setting import Options, prepare
from stepgraph.graph import mine_graph
from stepgraph.scoring import score

OTHERS = [f"{verb} the {noun}" for verb in ("mow", "saw", "dig") for noun in "abcdefghijklmnopq"]


@pytest.fixture(autouse=True)
def _untrained(monkeypatch):
    """Training takes seconds."""
    monkeypatch.setattr(methods, "train_auto_regressive", lambda *_, **__: Argmax())


class Interrupting:
    """Counts the labelled methods, and is interrupted at one of them."""

    def __init__(self, monkeypatch, at=None):
        self.labelled = []
        label = methods.Method.label_and_choose

        def counted(method, setting, modality):
            labels = label(method, setting, modality)
            if len(self.labelled) == at:
                raise KeyboardInterrupt
            self.labelled.append(method.name)
            return labels

        monkeypatch.setattr(methods.Method, "label_and_choose", counted)


def test_an_interrupted_run_goes_on(omelette, encoder, tmp_path, monkeypatch):
    state = tmp_path / "state.json"
    whole = run_table("table1", omelette, encoder=encoder, seeds=1)
    with monkeypatch.context() as context:
        Interrupting(context, at=3)
        with pytest.raises(KeyboardInterrupt):
            run_table("table1", omelette, encoder=encoder, state=state, seeds=1)

    with monkeypatch.context() as context:
        rest = Interrupting(context)
        resumed = run_table("table1", omelette, encoder=encoder, state=state, seeds=1)

    # Random and the reference were labelled for the first row, DistantSup. for the next.
    assert rest.labelled[0] == "Linear Steps"
    assert not {"Random", "DistantSup."} & {*rest.labelled}
    assert resumed == whole


def test_tables_share_what_is_finished(omelette, encoder, tmp_path, monkeypatch):
    state = tmp_path / "state.json"
    run_table("table1", omelette, encoder=encoder, state=state)
    again = Interrupting(monkeypatch)

    run_table("ablations", omelette, encoder=encoder, state=state)

    # The reference is labelled again, to be compared with what is new.
    assert {*again.labelled} == {"Non-probabilistic", "Adaptive Threshold", "Ours"}


def truth_reversed(dataset):
    reversed_ones = {
        name: replace(one, keysteps=one.keysteps[::-1]) for name, one in dataset.truth.items()
    }
    return replace(dataset, truth=reversed_ones)


def first_silent(dataset):
    first, *others = dataset.videos
    return replace(dataset, videos=(replace(first, transcript=()), *others))


@pytest.mark.parametrize("changed", [truth_reversed, first_silent])
def test_what_was_measured_on_other_data_is_not_taken(
    changed, omelette, encoder, tmp_path, monkeypatch
):
    state = tmp_path / "state.json"
    run_table("ablations", omelette, encoder=encoder, state=state)
    again = Interrupting(monkeypatch)

    run_table("ablations", changed(omelette), encoder=encoder, state=state)

    assert len({*again.labelled}) == 6


def other_options(text, graph):
    """Two values of every option, of which the second must not be taken for the first."""
    louder = [replace(one, values=one.values + 1) for one in text]
    silent = [replace(one, observed=~one.observed) for one in text]
    later = replace(graph, timing=graph.timing[:, ::-1].copy())
    return {
        "seed": (0, 1),
        "seeds": (5, 3),
        "threshold": (0.4, 0.41),
        "parts": (5, 3),
        "split": ("all", "val"),
        "graph": (graph, later),
        "noise": (OTHERS, OTHERS[:-1]),
        "scores": ({"video": text}, {"video": louder}, {"video": silent}),
        "video_threshold": (0.3, 0.31),
        "video_scores": ("given", "of another model"),
    }


def test_what_was_measured_with_other_options_is_not_taken(omelette, encoder):
    text = list(score(omelette.videos, omelette.vocabulary, encoder))
    others = other_options(text, mine_graph(text, omelette.vocabulary))
    of_table3 = {"models", "pretraining"}  # which keeps nothing
    assert list(others) == [one.name for one in fields(Options) if one.name not in of_table3]

    for name, values in others.items():
        settings = [prepare(omelette, encoder, Options(**{name: value})) for value in values]
        assert len({setting.fingerprint for setting in settings}) == len(values), name


def test_another_video_threshold_measures_again(omelette, encoder, tmp_path):
    state = tmp_path / "state.json"
    video = {"video": list(score(omelette.videos, omelette.vocabulary, encoder))}
    how = {"encoder": encoder, "scores": video}
    run_table("table1", omelette, state=state, video_threshold=0.1, **how)

    kept = run_table("table1", omelette, state=state, video_threshold=0.9, **how)

    assert kept == run_table("table1", omelette, video_threshold=0.9, **how)


def test_no_two_methods_are_kept_under_one_key(omelette, encoder):
    setting = prepare(omelette, encoder, Options())
    jobs = list(plans._jobs(setting, "crosstask", "text"))
    found = [method for plan in PLANS.values() for method in plan.methods]
    found += [method for _, method, _ in jobs if method.identity]
    # The same method stands in several tables; path searches are made anew for each.
    every = {id(method): method for method in found if "γ" not in method.name}.values()

    keys = {(m.name, m.described(setting), m.task_level, m.identity) for m in every}

    assert len(keys) == len(every)


def test_finished_noise_is_not_scored_again(omelette, encoder, tmp_path, monkeypatch):
    state = tmp_path / "state.json"
    first = run_table("noise", omelette, encoder=encoder, noise=OTHERS, state=state)
    monkeypatch.setattr(experiments.plans, "enlarge", None)

    assert run_table("noise", omelette, encoder=encoder, noise=OTHERS, state=state) == first


@pytest.mark.parametrize(
    "content",
    [
        '{"format": "other"}',
        "[]",
        '{"format": "stepgraph-reproduce"}',
        '{"format": "stepgraph-reproduce", "version": 1}',
        '{"format": "stepgraph-reproduce", "version": 1, "done": {"a": {"accuracy": "high"}}}',
    ],
)
def test_a_foreign_file_is_not_overwritten(content, omelette, encoder, tmp_path):
    state = tmp_path / "mine.json"
    state.write_text(content, "utf-8")

    with pytest.raises(DataError, match=r"mine\.json: (must be a file of finished|version must)"):
        run_table("ablations", omelette, encoder=encoder, state=state)

    assert state.read_text("utf-8") == content
