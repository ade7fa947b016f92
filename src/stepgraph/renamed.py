"""Names until 0.2.0 and those that replace them.

No old name has an alias: whoever uses one gets an error with the new one.  Files of version 1 are
read with the new keys.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import wraps
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, TypeAlias

Keys: TypeAlias = Mapping[str, Any]

OPTIONS = {"--order": "--order-weight"}
"""Options of the command line; options of decoders are attributes of their classes below."""

KEYS: dict[str, Keys] = {
    "stepgraph-graph": {
        "evidence": "notes",
        "habits": ("parameters", {"evidence": "log_evidence", "words": "classifiers"}),
        "courses": (
            "traces",
            {
                "met": "videos",
                "order": "order_weight",
                "tasks": (
                    "tasks",
                    {"*": ("*", {"*": ("*", {"heard": "emissions", "clear": "salient"})})},
                ),
            },
        ),
    },
    "stepgraph-vocabulary": {"evidence": "notes"},
    "stepgraph-maps": {
        "tasks": (
            "tasks",
            {
                "evidence": "notes",
                "arrows": "successions",
                "before": "precedences",
                "times": "repetitions",
            },
        )
    },
    "stepgraph-corrections": {"decided": "annotated"},
}
"""Keys of files of version 1, by format; ``*`` stands for any key, and lists are transparent."""

PRINTED = {
    "ask": {"told": "answers"},
    "demo --live": {"played": "media", "absent": "missing"},
    "graph next": {"chance": "proportion"},
    "graph video": {"departures": "deviations"},
    "search": {"moments": "hits"},
    "steps suggest": {"loose": "unassigned"},
}
"""Keys of what ``--json`` prints, by verb."""

NAMES = """
assistant.answers Told=AssistantAnswer Assistant.known=listed Assistant.known_task=listed_task
assistant.live State=OnlineState Teller=FixedLagOutput
assistant.live_following Follower=OnlineHMM
assistant.live_ground>assistant.live_model Way=TaskOrder Ground=OnlineModel
assistant.live_hearing>assistant.live_evidence Moment=ScoredSentence hold_against=similarities
    Ear=EvidenceAccumulator Told=EvidenceState
assistant.live_listening>assistant.live_recognition Listener=OnlineRecognizer
assistant.live_reading Spoken=ArrivedSentence Reader=LineParser Line=ArrivedLine
assistant.orders RECOGNISED=RECOGNIZED
cli.asked>cli.arguments open_asked=open_chosen_scorer say=render finish=conclude
cli.verbs write_recognised=write_recognized
core Scores.fix=annotate Scores.fixed=annotation
core.rows FREE=UNANNOTATED pin=clamp
core.vocabulary Vocabulary.evidence=notes
datasets Found=FoundDataset
datasets.generated.drawing Place=ObjectPlace colour_of=color_of
datasets.generated.scripts Step=ScriptStep SAID=MENTIONS
decoders.hearing>decoders.observations hear=observe Closeness=TaskSimilarity Heard=Observations
decoders.learning Spoken=SentenceSample learn_words=fit_classifiers Learner=ParameterFit
decoders.markov Viterbi.stay=self_transition
decoders.task_markov CLEAR=CONFIDENT TaskMarkov.background_bias=background_intercept
    TaskMarkov.bias=calibration_intercept TaskMarkov.common=mean_subtraction
    TaskMarkov.log_words=log_classifier TaskMarkov.order=order_weight
    TaskMarkov.order_videos=order_prior_videos TaskMarkov.order_votes=order_prior_transitions
    TaskMarkov.slope=calibration_slope TaskMarkov.spread=order_sigma
    TaskMarkov.stay=self_transition TaskMarkov.talk_odds=background_odds
decoders.tasks task_evidence=task_log_evidence task_stretches=task_segments
encoders EncoderOptions.hears=uses_speech EncoderOptions.looks=uses_vision
    EncoderOptions.reads=uses_screen_text EncoderOptions.worded=uses_text
encoders.colour>encoders.color COLOURS=COLORS ColourModel=ColorModel make_colour=make_color
encoders.each>encoders.encoding
evaluation.order clear_pairs=majority_pairs
experiments.assistance Measured=MeasuredExecutions
experiments.authors Behaviours=Behaviors choose_behaviours=choose_behaviors
experiments.methods Labeller=Labeler
experiments.plans Plan=TablePlan make_behaviours_table=make_behaviors_table
experiments.probing Example=ProbeExample
experiments.setting State=ResultStore
experiments.table Place=PaperPlace
export.answers Told=VideoDeviations describe_departures=describe_deviations
export.corrections Step=AnnotatedStep
export.decisions>export.annotations Decision=AnnotatedSegment Decisions=Annotations
    read_decisions=read_annotations write_decided=write_annotated
export.drawing tell_arrow=describe_succession
export.layout assign_layers=assign_ranks
export.report Measured=MeasuredMethod
export.results read_layer=read_annotation
export.svg Part=SvgPart COLOURS=COLORS page_colours=page_colors
export.timeline Told=AnyTimeline
files.addresses place_of=location_of Place=Location
files.arrays.checks Kind=ArrayContent
files.arrays.reader Reader=ArrayReader
graph.comparing Departure=Deviation Usual=Norm usual_of=norm_of departures=deviations
graph.courses>graph.traces can_follow=is_traceable LEAST_HEARD=LEAST_EMISSION
    Course=EmissionTrace clear_times=margin_timing Courses=EmissionTraces
graph.habits>graph.parameters Words=SentenceClassifier Habits=RecognizerParameters
graph.layers>graph.order_statistics STAY=SELF_TRANSITION Next=Successor Layer=OrderStatistics
    count_layer=order_statistics Layers=TaskStatistics
graph.maps ProcedureStep.place=position Step=ProcedureStep Arrow=Succession TaskMap=Procedure
    task_map=procedure_of
graph.saving_habits>graph.saving_parameters habits_fields=parameters_fields
    habits_of=parameters_of courses_fields=traces_fields courses_of=traces_of
graph.shares Trust=DirichletPrior
graph.task_graph TaskGraph.courses=traces TaskGraph.habits=parameters
    TaskGraph.layers=statistics
ingest Listening.hears=uses_speech
ingest.kept>ingest.media_cache place_of=cache_path
ingest.screen Line=ScreenLine say_who_is_read=note_screen_reading
ingest.speech Heard=Transcription
ingest.twice>ingest.language_check Twice=LanguageCheck
labelling.folders Part=LabelFile
labelling.shards LabelingJob.decided_by=settings LabelingJob.known=embeddings
    LabellingJob=LabelingJob
networks.timesformer normalise=normalize
pipeline Asked=ScorerChoice hears=uses_speech looks=uses_vision mine.decisions=annotations
    recognize_all.decisions=annotations
pipeline.articles Answer=ArticleMatch
pipeline.checking HEARD=MENTIONED
pipeline.encoding EncodingJob.decided_by=settings
pipeline.mining hear_piece=encode_piece Mined.heard=features Mined.spoken=sampled
    MiningJob.decided_by=settings MiningJob.decisions=annotations MiningJob.heard=features
    MiningJob.known=embeddings MiningJob.learns_words=fits_classifiers
    MiningJob.load_heard=load_features
pipeline.shards Found=ShardResult known_to=embeddings_of Job.decided_by=settings
pipeline.spoken>pipeline.name_matches SAME_MOMENT=SAME_SENTENCE Spoken=NameMatches
    find_spoken=match_names
pipeline.suggesting Said=PhraseCorpus
problems Problem.lost=fatal
progress say=note
scoring.fusion prioritise=prioritize standardise=standardize
scoring.known>scoring.embeddings Known=VocabularyEmbeddings know=embed_vocabulary
scoring.products>scoring.lazy Products=LazyScores
training.schedule make_optimiser=make_optimizer
viewer.index Place=IndexedResult
viewer.loopback Answer=Response
viewer.maps all_usual=norms_of usual_in=norm_in told=deviation_rows
viewer.searching Moment=SearchHit
vocabulary.evidence>vocabulary.notes with_evidence=with_notes evidence_fields=notes_fields
    evidence_of=notes_of
vocabulary.suggested Example=Mention SuggestedVocabulary.loose=unassigned
vocabulary.suggesting Kind=PhraseGroup said_often=least_recurrence
"""
"""Python names below ``stepgraph``: a module, the new one where it moved, and what it contains."""


def with_new_keys(content: Any, keys: Keys) -> Any:
    """Replace the old keys of a file's content.

    >>> with_new_keys([{"heard": 1, "hop": 2}], {"heard": "emissions"})
    [{'emissions': 1, 'hop': 2}]
    """
    if isinstance(content, list):
        return [with_new_keys(one, keys) for one in content]
    if not isinstance(content, dict):
        return content
    found = {}
    for old, value in content.items():
        new = keys.get(old, keys.get("*", old))
        name, below = (new, {}) if isinstance(new, str) else new
        found[old if name == "*" else name] = with_new_keys(value, below) if below else value
    return found


def renamed(kind: str, name: str) -> str:
    """Return the new name of an attribute of a class, or an empty text if it had no other."""
    return _ATTRIBUTES.get(kind, {}).get(name, "")


def _read() -> tuple[dict[str, str], dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    """Parse the table into moved modules, names by module, and attributes by class."""
    moved: dict[str, str] = {}
    names: dict[str, dict[str, str]] = {}
    attributes: dict[str, dict[str, str]] = {}
    for word in NAMES.split():
        old, equals, new = word.partition("=")
        if not equals:
            old, _, new = word.partition(">")
            module = f"stepgraph.{new or old}"
            if new:
                moved[f"stepgraph.{old}"] = module
        elif "." in old:
            kind, _, attribute = old.partition(".")
            attributes.setdefault(kind, {})[attribute] = new
            names.setdefault(module, {})
        else:
            names.setdefault(module, {})[old] = new
    return moved, names, attributes


_MOVED, _NAMES, _ATTRIBUTES = _read()


class _Renames(PathFinder):
    """Finder that lets modules and their classes name what replaced an old name."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name in _MOVED:
            raise ModuleNotFoundError(f"module {name!r} is now {_MOVED[name]!r}", name=name)
        spec = super().find_spec(name, path, target) if name in _NAMES else None
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def execute(module: ModuleType) -> None:
                run(module)
                explain_old_names(module)

            spec.loader.exec_module = execute  # type: ignore[method-assign]
        return spec


def explain_old_names(module: ModuleType) -> None:
    """Make a module, and its classes with other attributes than before, name the new names."""
    names = _NAMES.get(module.__name__, {})

    def lookup(name: str) -> Any:
        if name in names:  # an AttributeError would lose its text in "from module import name"
            raise ImportError(f"{name!r} of {module.__name__!r} is now {names[name]!r}")
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    vars(module).setdefault("__getattr__", lookup)
    for name in _ATTRIBUTES.keys() & vars(module).keys():
        owner = vars(module)[name]
        if not isinstance(owner, type):
            setattr(module, name, _refusing(owner, name, _ATTRIBUTES[name]))
        elif "__getattr__" not in vars(owner):
            _explain_attributes(owner, _ATTRIBUTES[name])


def _refusing(function: Any, owner: str, names: dict[str, str]) -> Any:
    """Wrap a function so that an old argument is an error with the new one."""

    @wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        for old in names.keys() & given.keys():
            raise TypeError(f"{owner} has no argument {old!r}; it is now {names[old]!r}")
        return function(*args, **given)

    return call


def _explain_attributes(kind: Any, names: dict[str, str]) -> None:
    def lookup(self: Any, name: str) -> Any:
        hint = f"; it is now {names[name]!r}" if name in names else ""
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}{hint}")

    kind.__getattr__ = lookup
    if not issubclass(kind, tuple):
        kind.__init__ = _refusing(kind.__init__, kind.__name__, names)


def install() -> None:
    """Install the finder once."""
    if _Renames not in sys.meta_path:
        sys.meta_path.insert(0, _Renames)
