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
assistant.live State=OnlineState Teller=FixedLagOutput FixedLagOutput.tell=emit
    Live.ground=model
assistant.live_following Follower=OnlineHMM
assistant.live_ground>assistant.live_model Way=TaskOrder Ground=OnlineModel
    OnlineModel.way=task_order
assistant.live_hearing>assistant.live_evidence Moment=ScoredSentence hold_against=similarities
    Ear=EvidenceAccumulator Told=EvidenceState EvidenceAccumulator.hear=add
    EvidenceAccumulator.heard=state EvidenceAccumulator.moments=sentences
    EvidenceAccumulator.open_moments=open_sentences EvidenceState.evidence=log_evidence
assistant.live_listening>assistant.live_recognition Listener=OnlineRecognizer
    OnlineRecognizer.ground=model
assistant.live_reading Spoken=ArrivedSentence Reader=LineParser Line=ArrivedLine
assistant.orders RECOGNISED=RECOGNIZED
cli.asked>cli.arguments open_asked=open_chosen_scorer say=render finish=conclude
    open_dataset.looks=uses_vision
cli.parser make_parser.asked=arguments
cli.results decisions_in=annotations_in
cli.verbs write_recognised=write_recognized open_with_truth.scorer_looks=scorer_uses_vision
core Scores.fix=annotate Scores.fixed=annotation
core.rows FREE=UNANNOTATED pin=clamp clamp.fixed=annotation
core.vocabulary Vocabulary.evidence=notes
datasets Found=FoundDataset
datasets.generated open_generated.spoken=with_speech
datasets.generated.drawing Place=ObjectPlace colour_of=color_of draw.colour=color
    draw_oval.colour=color
datasets.generated.render Thing.colour=color
datasets.generated.scripts Step=ScriptStep SAID=MENTIONS Keystep.colour=color
decoders.hearing>decoders.observations hear=observe Closeness=TaskSimilarity Heard=Observations
    Observations.closeness=similarity Observations.evidence=task_similarity
    Observations.fixed=annotation Observations.fixed_rows=row_annotation
    Observations.moment=index Observations.open_weight=unannotated_weight
    Observations.said=sources
decoders.learning Spoken=SentenceSample learn_words=fit_classifiers Learner=ParameterFit
    ParameterFit.courses=traces ParameterFit.habits=parameters ParameterFit.spoken=sampled
    SentenceSample.met=population fit_classifiers.spoken=sampled
decoders.markov Viterbi.stay=self_transition make_chain.stay=self_transition
decoders.task_markov CLEAR=CONFIDENT TaskMarkov.background_bias=background_intercept
    TaskMarkov.bias=calibration_intercept TaskMarkov.common=mean_subtraction
    TaskMarkov.log_words=log_classifier TaskMarkov.order=order_weight
    TaskMarkov.order_videos=order_prior_videos TaskMarkov.order_votes=order_prior_transitions
    TaskMarkov.slope=calibration_slope TaskMarkov.spread=order_sigma
    TaskMarkov.stay=self_transition TaskMarkov.talk_odds=background_odds
decoders.tasks task_evidence=task_log_evidence task_stretches=task_segments
    task_log_evidence.heard=observations task_posterior.evidence=log_evidence
    task_posterior.habits=parameters task_segments.evidence=log_evidence
    task_segments.heard=observations task_shares.evidence=log_evidence
    task_shares.habits=parameters
encoders EncoderOptions.hears=uses_speech EncoderOptions.looks=uses_vision
    EncoderOptions.reads=uses_screen_text EncoderOptions.worded=uses_text
encoders.checkpoints NetworkModel.colours=colors
encoders.colour>encoders.color COLOURS=COLORS ColourModel=ColorModel make_colour=make_color
encoders.each>encoders.encoding
evaluation.order clear_pairs=majority_pairs CLEAR=MAJORITY check_order.layers=statistics
experiments.assistance Measured=MeasuredExecutions
experiments.authors Behaviours=Behaviors choose_behaviours=choose_behaviors
    AuthorsBayesFilter.behaviours=behaviors AuthorsPathSearch.behaviours=behaviors
    mine_as_authors.behaviours=behaviors
experiments.methods Labeller=Labeler
experiments.plans Plan=TablePlan make_behaviours_table=make_behaviors_table
experiments.probing Example=ProbeExample
experiments.setting State=ResultStore
experiments.table Place=PaperPlace
export.answers Told=VideoDeviations describe_departures=describe_deviations
    VideoDeviations.departures=deviations describe_deviations.told=videos
export.corrections Step=AnnotatedStep
export.decisions>export.annotations Decision=AnnotatedSegment Decisions=Annotations
    read_decisions=read_annotations write_decided=write_annotated decide=annotate
    annotate.decisions=annotations to_segments.decided=annotated
    write_annotated.decided=annotated
export.drawing tell_arrow=describe_succession draw_task.colours=colors
export.layout assign_layers=assign_ranks
export.maps of_names.evidence=notes
export.report Measured=MeasuredMethod keystep_colours=keystep_colors
export.results read_layer=read_annotation save_corrections.decided=spans
export.svg Part=SvgPart COLOURS=COLORS page_colours=page_colors
export.timeline Told=AnyTimeline
files.addresses place_of=location_of Place=Location
files.arrays.checks Kind=ArrayContent
files.arrays.reader Reader=ArrayReader
graph.comparing Departure=Deviation Usual=Norm usual_of=norm_of departures=deviations
    Norm.known=procedure deviations.usual=norm norm_of.known=procedure
    norm_of.layers=statistics
graph.courses>graph.traces can_follow=is_traceable LEAST_HEARD=LEAST_EMISSION
    Course=EmissionTrace clear_times=margin_timing Courses=EmissionTraces
    EmissionTrace.clear=salient EmissionTrace.clear_times=margin_timing
    EmissionTrace.heard=emissions EmissionTrace.of_moments=of_runs
    EmissionTraces.met=population Sample.met=population
graph.habits>graph.parameters Words=SentenceClassifier Habits=RecognizerParameters
    RecognizerParameters.evidence=log_evidence RecognizerParameters.words=classifiers
    learn_prior.evidence=log_evidence
graph.layers>graph.order_statistics STAY=SELF_TRANSITION Next=Successor Layer=OrderStatistics
    count_layer=order_statistics Layers=TaskStatistics IMAGINED_VIDEOS=PRIOR_VIDEOS
    IMAGINED_VOTES=PRIOR_TRANSITIONS OrderStatistics.clear=salient
    OrderStatistics.place=position OrderStatistics.places=position_ranges
    TaskStatistics.courses=traces TaskStatistics.next_after=successors_of
    blend_transitions.imagined=pseudo_counts log_due.imagined=pseudo_counts
    order_statistics.courses=traces
graph.maps Step=ProcedureStep Arrow=Succession TaskMap=Procedure task_map=procedure_of
    Procedure.arrows=successions Procedure.arrows_from=successions_from
    ProcedureStep.place=position
graph.saving_habits>graph.saving_parameters habits_fields=parameters_fields
    habits_of=parameters_of courses_fields=traces_fields courses_of=traces_of
    parameters_fields.habits=parameters traces_fields.courses=traces
graph.shares Trust=DirichletPrior DirichletPrior.imagined=pseudo_count
graph.task_graph TaskGraph.courses=traces TaskGraph.habits=parameters
    TaskGraph.layers=statistics
ingest Listening.hears=uses_speech
ingest.kept>ingest.media_cache place_of=cache_path
ingest.screen Line=ScreenLine say_who_is_read=note_screen_reading
ingest.speech Heard=Transcription
ingest.twice>ingest.language_check Twice=LanguageCheck
labelling.folders Part=LabelFile
labelling.shards LabellingJob=LabelingJob LabelingJob.decided_by=settings
    LabelingJob.known=embeddings
networks.timesformer normalise=normalize
pipeline Asked=ScorerChoice hears=uses_speech looks=uses_vision decide=annotate
    mine.decisions=annotations open_scorer.asked=choice recognize_all.decisions=annotations
pipeline.articles Answer=ArticleMatch
pipeline.checking HEARD=MENTIONED
pipeline.encoding EncodingJob.decided_by=settings
pipeline.mining hear_piece=encode_piece Mined.heard=features Mined.spoken=sampled
    MiningJob.decided_by=settings MiningJob.decisions=annotations MiningJob.heard=features
    MiningJob.known=embeddings MiningJob.learns_words=fits_classifiers
    MiningJob.load_heard=load_features
pipeline.shards Found=ShardResult known_to=embeddings_of Job.decided_by=settings
    Shards.place=path
pipeline.spoken>pipeline.name_matches SAME_MOMENT=SAME_SENTENCE Spoken=NameMatches
    find_spoken=match_names NameMatches.clear=salient NameMatches.moment=sentence
    recurring.known=earlier
pipeline.suggesting Said=PhraseCorpus
problems Problem.lost=fatal
progress say=note
scoring score_each.known=embeddings
scoring.fusion prioritise=prioritize standardise=standardize
scoring.known>scoring.embeddings Known=VocabularyEmbeddings know=embed_vocabulary
scoring.products>scoring.lazy Products=LazyScores LazyScores.fix=annotate
    LazyScores.fixed=annotation LazyScores.known=part_annotation
training.schedule make_optimiser=make_optimizer
viewer.index Place=IndexedResult place_of=index_folder Files.places=results
viewer.loopback Answer=Response
viewer.maps all_usual=norms_of usual_in=norm_in told=deviation_rows deviation_rows.usual=norm
    picture.usual=norm
viewer.pages COLOURS=COLORS overview_of.usual=norm
viewer.searching Moment=SearchHit nearest.asked=query
vocabulary.evidence>vocabulary.notes with_evidence=with_notes evidence_fields=notes_fields
    evidence_of=notes_of
vocabulary.suggested Example=Mention SuggestedVocabulary.loose=unassigned
vocabulary.suggesting Kind=PhraseGroup said_often=least_recurrence collect.said=narrations
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
    found = (names for owner, names in _ATTRIBUTES.items() if owner.endswith(f".{kind}"))
    return next((names[name] for names in found if name in names), "")


def _read() -> tuple[dict[str, str], dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    """Parse the table into moved modules, names by module, and attributes by full name."""
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
            attributes.setdefault(f"{module}.{kind}", {})[attribute] = new
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
    for name, owner in list(vars(module).items()):
        changed = _ATTRIBUTES.get(f"{module.__name__}.{name}", {})
        if changed and not isinstance(owner, type):
            setattr(module, name, _refusing(owner, name, changed))
        elif changed and "__getattr__" not in vars(owner):
            _explain_attributes(owner, changed)


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
