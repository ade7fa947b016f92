"""Decoders by name: those of the package, and those of other people."""

import gc
import re
import weakref
from dataclasses import asdict, fields

import numpy as np
import pytest

from reference import make_graph, make_labels, make_scores
from stepgraph import decoders
from stepgraph.decoders import (
    DECODERS,
    Argmax,
    DropDTW,
    PathSearch,
    TaskMarkov,
    checked_decode,
    decoder_class,
    encoder_for,
    load_decoder,
)
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import ConfigError

OWN = '''
from dataclasses import dataclass
import numpy as np
from stepgraph import Labels
from stepgraph.encoders import EncoderOptions

@dataclass(frozen=True)
class Always:
    """Label every row alike."""

    keystep: int = 1

    def decode(self, scores, graph):
        return Labels(scores.video, np.full(len(scores), self.keystep), scores.vocabulary)

class Plain:
    encoder = EncoderOptions(context=2)

    def __init__(self, needed, *, extra=2.5):
        self.sum = needed + extra

    def decode(self, scores, graph):
        return None

class Anything:
    def __init__(self, **options):
        self.options = options

    def decode(self, scores, graph):
        return None

class Idle:
    pass

def make(options):
    return Always()
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module of the user's, somewhere on the path."""
    (tmp_path / "own_decoders.py").write_text(OWN)
    (tmp_path / "broken_decoders.py").write_text("import not_installed_anywhere")
    monkeypatch.syspath_prepend(tmp_path)


def test_decoders_are_made_by_name():
    assert load_decoder("argmax") == Argmax()
    assert load_decoder("path-search", threshold=0.3) == PathSearch(0.3)
    assert load_decoder() == TaskMarkov()
    assert all(load_decoder(name) == DECODERS[name]() for name in DECODERS)


def test_unknown_decoder_is_answered_with_the_known_ones():
    with pytest.raises(
        ConfigError,
        match=r"must be one of adaptive-threshold, anchors-only, argmax, .*, got 'orac",
    ):
        load_decoder("oracle")


@pytest.mark.parametrize(
    ("name", "known"), [("path-search", "it has threshold"), ("argmax", "it has none")]
)
def test_unknown_option_is_answered_with_the_known_ones(name, known):
    with pytest.raises(ConfigError, match=rf"'{name}' has no option 'gamma'; {known}"):
        load_decoder(name, gamma=1)


NAMES = """argmax path-search bayes-filter viterbi drop-dtw graph2vid adaptive-threshold random
    argmax-hold anchors-only halved-gaps"""


def test_every_decoder_of_the_package_is_found_under_its_name():
    assert set(DECODERS) == {*NAMES.split(), "task-markov"}
    assert list(DECODERS) == sorted(DECODERS)


def test_published_numbers_are_those_of_these_defaults():
    dtw = {"percentile": 30.0, "temperature": 0.1, "drop_keysteps": False}

    defaults = {name: asdict(kind()) for name, kind in DECODERS.items()}

    assert {name: one for name, one in defaults.items() if name != "task-markov"} == {
        "adaptive-threshold": {"keep": 0.5},
        "anchors-only": {"threshold": 0.4},
        "argmax": {},
        "argmax-hold": {},
        "bayes-filter": {"epsilon": 0.1},
        "drop-dtw": dtw,
        "graph2vid": dtw | {"majority": 0.75, "max_states": 10_000},
        "halved-gaps": {"threshold": 0.4},
        "path-search": {"threshold": 0.4},
        "random": {"seed": 0, "silence": False},
        "viterbi": {"temperature": 0.1, "self_transition": 0.97, "floor": 0.001},
    }


def test_a_decoder_is_added_by_one_file(tmp_path, monkeypatch):
    (tmp_path / "fixed.py").write_text(OWN.replace("class Always", "class AlwaysOneOf3"))
    monkeypatch.setattr(decoders, "__path__", [*decoders.__path__, str(tmp_path)])

    found = dict(decoders._find_decoders())

    assert set(found) - set(DECODERS) == {"always-one-of3"}
    assert [field.name for field in fields(found["always-one-of3"])] == ["keystep"]


@pytest.mark.usefixtures("own")
def test_a_decoder_of_the_user_is_made_from_its_module():
    decoder = load_decoder("own_decoders:Always", keystep=0)

    labels = decoder.decode(make_scores(np.ones((3, 2))), make_graph(np.eye(2)))

    assert labels.keysteps.tolist() == [0, 0, 0]
    assert [field.type for field in fields(decoder_class("own_decoders:Always"))] == [int]


@pytest.mark.usefixtures("own")
def test_a_decoder_of_the_user_need_not_be_a_dataclass():
    assert load_decoder("own_decoders:Plain", needed=1).sum == 3.5
    assert load_decoder("own_decoders:Anything", a=1, b=2).options == {"a": 1, "b": 2}


@pytest.mark.usefixtures("own")
def test_a_decoder_may_say_which_encoder_it_is_made_for():
    assert encoder_for("own_decoders:Plain") == EncoderOptions(context=2)
    assert encoder_for("own_decoders:Always") == encoder_for("argmax") == EncoderOptions()
    assert encoder_for("task-markov") == TaskMarkov.encoder


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere_at_all:Class", "in a module that can be imported, got: No module named"),
        ("broken_decoders:Class", "got: No module named 'not_installed_anywhere'; does it lie on"),
        ("own_decoders:Missing", "must be a class with a method decode.*got nothing of that name"),
        ("own_decoders:Idle", "must be a class with a method decode.*Idle'>, which has none"),
        ("own_decoders:make", "must be a class with a method decode.*make at"),
        ("own_decoders:", "must be one of adaptive-threshold.* or a class of yours as 'module:C"),
        (":Class", "must be one of adaptive-threshold"),
        (".own:Class", "must be one of adaptive-threshold"),
    ],
)
def test_what_is_no_decoder_is_refused_with_a_reason(name, message):
    with pytest.raises(ConfigError, match=message) as refused:
        load_decoder(name)

    assert re.search(re.escape(repr(name)), str(refused.value))


@pytest.mark.usefixtures("own")
def test_options_of_a_decoder_of_the_user_are_checked():
    with pytest.raises(ConfigError, match="'own_decoders:Always' has no option 'x'; it has keys"):
        load_decoder("own_decoders:Always", x=1)
    with pytest.raises(ConfigError, match="'own_decoders:Plain' requires its option 'needed"):
        load_decoder("own_decoders:Plain", extra=1)
    with pytest.raises(ConfigError, match="has no option 'x'; it has needed, extra"):
        load_decoder("own_decoders:Plain", needed=1, x=1)


@pytest.mark.parametrize("name", DECODERS)
def test_no_decoder_keeps_a_graph_alive(name):
    graph = make_graph(np.eye(5, k=1, dtype=np.int64))
    load_decoder(name).decode(make_scores(np.eye(5) + 0.1), graph)

    gone = weakref.ref(graph)
    del graph
    gc.collect()

    assert gone() is None


def test_a_keystep_that_may_not_be_on_some_rows_is_aligned_with_others():
    values = np.array([[0.9, -np.inf], [0.1, 0.8]])

    labels = DropDTW().decode(make_scores(values), make_graph([[0, 1], [0, 0]]))

    assert labels.keysteps.tolist() == [0, 1]


class Given:
    def __init__(self, labels):
        self.labels = labels

    def decode(self, scores, graph):
        return self.labels


def test_labels_of_a_decoder_are_checked_where_they_are_used():
    scores, graph = make_scores(np.ones((3, 5))), make_graph(np.eye(5))
    right = make_labels([0, 1, 2])

    assert checked_decode(Given(right), scores, graph) is right


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "Given must return Labels of the video that it was given, 'video', got NoneType"),
        (np.zeros(3), "'video', got ndarray"),
        (make_labels([0, 1]), "'video' with 3 rows, got 'video' with 2"),
        (make_labels([0, 1, 2], video="v"), "'video' with 3 rows, got 'v' with 3"),
    ],
    ids=["nothing", "array", "length", "video"],
)
def test_what_are_no_labels_of_the_video_is_refused(labels, message):
    with pytest.raises(ConfigError, match=message):
        checked_decode(Given(labels), make_scores(np.ones((3, 5))), make_graph(np.eye(5)))


def test_an_option_may_be_called_name(tmp_path, monkeypatch):
    (tmp_path / "called.py").write_text(
        "class Named:\n    def __init__(self, name='a'):\n        self.name = name\n"
        "    def decode(self, scores, graph):\n        return None\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    assert load_decoder("called:Named", name="b").name == "b"
