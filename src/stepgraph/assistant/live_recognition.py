"""Online posteriors of the task and of its keysteps, updated every second."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from math import ceil

import numpy as np
from scipy.special import expit

from stepgraph.assistant.live_evidence import EvidenceAccumulator, Vector, similarities
from stepgraph.assistant.live_following import Floats, Lengths, OnlineHMM
from stepgraph.assistant.live_model import OnlineModel
from stepgraph.core import Sentence
from stepgraph.decoders.tasks import task_shares

# The least spread of scores: with one sentence there is none, and noise must not count as some.
_SPREAD = 1e-3
# The most probable tasks are followed in parallel, so that any may take the lead at once; one
# that was not among them is followed from its beginning, at a limited number of rows a second,
# more while there is no current task.
_SIDE_BY_SIDE, _CATCH_UP, _BEGIN = 3, 24, 100
# Where another task began, sentences that are processed again each second.
_REHEARD = 6


class OnlineRecognizer:
    """Task and keystep posteriors, given the sentences up to now.

    Attributes
    ----------
    rows
        Number of whole seconds processed.
    task
        The most probable task whose model has reached the current row; empty while none has.
    shares : shape (Z,)
        Posterior of each task, given that it is one of them.  The probability that it is any of
        them needs the log-evidence of a whole video.

    Parameters
    ----------
    model
        Graph and vectors of its keysteps.
    length
        Total length in seconds, if known.
    """

    def __init__(self, model: OnlineModel, length: float | None = None) -> None:
        self.model, self.length = model, length
        self.rows, self.task = 0, ""
        self.shares = np.zeros(len(model.tasks))
        self._followers: dict[str, OnlineHMM] = {}
        self.names = tuple(model.tasks)
        self._number = {task: number for number, task in enumerate(self.names)}
        parameters = model.graph.parameters
        self._parameters = (
            parameters if parameters is not None and parameters.tasks == self.names else None
        )
        self._waiting: list[tuple[float, Sentence]] = []
        self._texts: list[str] = []
        self._evidence = self._new_evidence()
        self._restarted: EvidenceAccumulator | None = None
        self._state = self._evidence.state()

    @property
    def origin(self) -> int:
        """First row of the current task."""
        return self._evidence.origin

    def take(self, now: float, sentences: Iterable[Sentence]) -> None:
        """Queue sentences, to be observed at their end, or at ``now`` if that is sooner."""
        self._waiting += [(min(one.end, now), one) for one in sentences]
        self._waiting.sort(key=lambda pair: pair[0])

    def see(self, scores: Vector) -> None:
        """Add the scores of all keysteps in the next second, shape (K,)."""
        [found] = similarities(self.model.targets, scores[None])
        at = self.rows - self.origin
        self._evidence.add(at, at + 1, scores, found)

    def until(self) -> int:
        """Number of rows after which all queued sentences are observed."""
        return max([self.rows, *(ceil(end) for end, _ in self._waiting)])

    def listen(self) -> None:
        """Advance by one second and update the posteriors."""
        self.rows += 1
        while self._waiting and self._waiting[0][0] <= self.rows:
            self._observe(self._waiting.pop(0)[1])
        changed = self._evidence.advance(self.rows - self.origin)
        if self._begin_anew():
            changed = 0
        self._state = self._evidence.state()
        if np.isfinite(self._state.log_evidence).any():
            self.shares = task_shares(self._state.log_evidence, self._parameters)
            self._follow(changed)

    def _observe(self, sentence: Sentence) -> None:
        """Encode a sentence, and again those before it whose context it completes."""
        evidence, wide = self._evidence, self.model.context
        self._texts.append(sentence.text)
        first = max(0, len(evidence.sentences) - wide)
        numbers = range(first, len(evidence.sentences) + 1)
        before = len(self._texts) - len(numbers)
        texts = [
            " ".join(self._texts[max(0, here - width) : here + width + 1])
            for width in ((0, wide) if self.model.blend else (wide,))
            for here in range(before, len(self._texts))
        ]
        vectors = self.model.encode(texts)
        vectors = vectors.reshape(-1, len(numbers), vectors.shape[1]).mean(axis=0)
        found = similarities(evidence.targets, vectors)
        for number, vector, one in zip(numbers, vectors, found, strict=True):
            if number < len(evidence.sentences):
                evidence.revise(number, vector, one)
            else:
                # A sentence that jumps back in time starts where the one before it does.
                earliest = evidence.sentences[-1].start if evidence.sentences else 0.0
                start = max(sentence.start - self.origin, earliest)
                evidence.add(start, max(sentence.end - self.origin, start), vector, one)

    def _begin_anew(self) -> bool:
        """Restart where another task began, in parts; return True when that is done."""
        old = self._evidence
        if self._restarted is None and (turned := old.turned()) > 0:
            self._restarted = self._new_evidence(old.origin + turned)
        if self._restarted is None:
            return False
        new, row = self._restarted, self._restarted.origin - old.origin
        observed = bisect_left(old.sentences, float(row), key=lambda one: one.start) + len(
            new.sentences
        )
        rest = old.sentences[observed:]
        for one in rest[:_REHEARD]:
            found = one.found
            if not len(found):
                [found] = similarities(old.targets, one.vector[None])
            new.add(one.start - row, one.end - row, one.vector, found)
        if len(rest) > _REHEARD:
            new.advance(int(rest[_REHEARD].start) - row)
            return False
        new.advance(self.rows - new.origin)
        self._evidence, self._restarted, self.task, self._followers = new, None, "", {}
        return True

    def _new_evidence(self, origin: int = 0) -> EvidenceAccumulator:
        return EvidenceAccumulator(self.model.targets, max(self.model.context, 1) + 1, origin)

    @property
    def follower(self) -> OnlineHMM | None:
        """Model of the current task, or None before there is one."""
        return self._followers.get(self.task)

    def _follow(self, changed: int) -> None:
        """Update the models of the few most probable tasks, and choose the current task.

        The observations of the rows from ``changed`` on are new.  The current task so far is
        updated fully; the others share a limited number of rows a second.
        """
        best = [self.names[at] for at in np.argsort(-self.shares, kind="stable")[:_SIDE_BY_SIDE]]
        current = [self.task] if self.task else []
        followers = {
            task: self._followers.get(task) or self._new_follower(task)
            for task in [*current, *best]
        }
        left, rows = _CATCH_UP if current else _BEGIN, self.rows - self.origin
        for task, follower in followers.items():
            follower.rewind(changed)
            first = follower.rows
            last = rows if task == self.task else min(rows, first + left)
            follower.follow(self._log_emission(task, first, last))
            left -= 0 if task == self.task else last - first
        self._followers = followers
        self.task = next((one for one in [*best, *current] if followers[one].rows == rows), "")

    def _new_follower(self, task: str) -> OnlineHMM:
        return OnlineHMM(self.model.expected(task), self._lengths(task))

    def _lengths(self, task: str) -> Lengths:
        if self.length is None:
            return self.model.lengths(task)
        return Lengths(np.array([max(self.length - self.origin, 1.0)]), np.zeros(1))

    def _log_emission(self, task: str, first: int, last: int) -> Floats:
        """Log-emissions of a task on rows from ``first`` to ``last``, in nats, shape (k, n)."""
        part = np.array(self._evidence.part[first:last], dtype=np.int64)
        size = len(self.model.tasks[task])
        rows = np.zeros((len(part), size))
        sentences, place = np.unique(part[part >= 0], return_inverse=True)
        if len(sentences):
            vectors = np.stack([self._evidence.sentences[number].vector for number in sentences])
            columns = self._columns(task)
            decoder, targets = self.model.decoder, self.model.targets
            close = similarities(targets, vectors, columns).astype(np.float64)
            emission = decoder.soften(close, self._state.mean[columns])
            of_text = None if targets.vectors is None else vectors
            emission += decoder.log_classifier(of_text, task, self.model.graph.parameters)
            rows[part >= 0] = emission[place]
        return rows

    def _columns(self, task: str) -> slice:
        """Slice of the keysteps of a task among all targets."""
        first = int(self.model.targets.first[self._number[task]])
        return slice(first, first + len(self.model.tasks[task]))

    def look_back(self, rows: int) -> tuple[Floats, Floats]:
        """Posterior of each keystep, and of background, on the last rows: (k, n) and (k,)."""
        assert self.follower is not None, "there is a task"
        found = self.follower.look_back(rows)
        return found, self._background(len(found))

    def _background(self, rows: int) -> Floats:
        """Posterior of background on the last rows, in the mean over possible lengths, (k,)."""
        assert self.follower is not None, "there is a task"
        decoder, lengths = self.model.decoder, self.follower.lengths.rows
        if not decoder.background:
            return np.zeros(rows)
        row = np.arange(self.follower.rows - rows, self.follower.rows)[:, None] + 0.5
        odds = decoder.background_odds(
            np.minimum(row / lengths, 1 - 0.5 / np.maximum(lengths, 1.0))
        )
        odds += self._ahead(rows)[:, None]
        background: Floats = expit(odds) @ self.follower.length_shares()
        return background

    def _ahead(self, rows: int) -> Floats:
        """Similarity of the last rows to the title less the best keystep, standardised, (k,)."""
        number, columns = self._number[self.task], self._columns(self.task)
        targets = self.model.targets
        ahead = np.zeros(rows)
        if columns.stop == len(targets.keysteps) or targets.keysteps[columns.stop] >= 0:
            return ahead  # it has no title
        part = np.array(self._evidence.part[-rows:], dtype=np.int64)
        sentences, place = np.unique(part[part >= 0], return_inverse=True)
        if len(sentences):
            vectors = np.stack([self._evidence.sentences[each].vector for each in sentences])
            close = similarities(targets, vectors, slice(columns.start, columns.stop + 1))
            lead = close[:, -1] - close[:, :-1].max(axis=1)
            spread = max(float(self._state.spread[number]), _SPREAD)
            ahead[part >= 0] = ((lead - self._state.ahead[number]) / spread)[place]
        return ahead

    def progress(self, row: int) -> float:
        """Expected share of the whole that is over at the end of a row of the current task."""
        if self.follower is None:
            return 0.0 if not self.length else min(1.0, (row + 1) / self.length)
        over = np.minimum(1.0, (row + 1) / self.follower.lengths.rows)
        return float(self.follower.length_shares() @ over)
