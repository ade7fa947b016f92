"""Propose the steps of a task: phrases of actions that recur across its videos.

Phrases of similar meaning that occur at similar positions in a video represent one another.  Steps
are chosen greedily: each is the phrase that represents most of what no earlier one represents.
Other modules group the videos by task and order the steps.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Sentence, Video
from stepgraph.vocabulary.phrases import Phrase, read_name, words_in
from stepgraph.vocabulary.suggested import Mention

Floats: TypeAlias = NDArray[np.float64]
Encode: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]

# Minimum similarity for one phrase to represent another: the mean of three cosines (phrases,
# verbs, objects), less half the distance of their positions in a video.
NEAR = 0.7
_APART = 0.5
NEAR_NAME = 0.7
"""Minimum cosine for the name of a listed step to represent a phrase."""
# Pseudo-mentions in the middle of a video: they shrink the mean position of a rare phrase.
_IMAGINED = 2.0
_FEWEST = 2
# Minimum share of the mentions of a step with the same place for it to be part of the name.
_SAME_PLACE = 0.25
# Minimum share of the videos that use the same words for these to be the name of a step.
# Putting something into a pan and onto a plate are two steps if both are so frequent; whisking it
# in a bowl and without one are the same.
_SAME_WORDS = 0.03
_MOVING = words_in("put place take set lay drop throw move remove pull push slide bring")
# Verbs that are unspecific without a place; no step is named so.
_HANDLING = words_in("take grab bring move leave hold")
_LIGHT = _HANDLING | words_in("put place add set lay throw")
# Minimum similarity of a phrase to the title for it to add nothing.
_SAME_AS_TITLE = 0.85
_EXAMPLES = 3
_OWNERS = words_in("my our your his her their this that these those its another each the")


class PhraseGroup(NamedTuple):
    """Phrases with the same verb, object and place.

    Attributes
    ----------
    phrase
        One of them.
    name
        Their most frequent wording.
    mentions
        Number of the video, and time in seconds, of each.
    place
        Mean position in a video, from 0 to 1, shrunk towards 0.5 for few mentions.
    """

    phrase: Phrase
    name: str
    mentions: tuple[tuple[int, float], ...]
    place: float

    @property
    def videos(self) -> set[int]:
        """Numbers of the videos that mention it."""
        return {video for video, _ in self.mentions}


class Chosen(NamedTuple):
    """A phrase that represents others, and all of these, itself the first."""

    kind: PhraseGroup
    kinds: tuple[PhraseGroup, ...]

    @property
    def videos(self) -> set[int]:
        """Numbers of the videos that mention any of them."""
        return set().union(*(kind.videos for kind in self.kinds))

    @property
    def mentions(self) -> list[tuple[int, float]]:
        """Mentions of all of them, those of the phrase itself first."""
        return [mention for kind in self.kinds for mention in kind.mentions]


def collect(
    narrations: Sequence[Sequence[Phrase]], durations: Sequence[float]
) -> list[PhraseGroup]:
    """Group phrases that are the same, those of most videos first.

    Parameters
    ----------
    narrations
        The phrases of each video.
    durations
        Duration of each video, in seconds.
    """
    places = Counter(
        one for phrases in narrations for one in {(phrase.key, phrase.where) for phrase in phrases}
    )
    enough = least_recurrence(len(narrations))
    found: defaultdict[tuple[str, str], list[tuple[int, Phrase]]] = defaultdict(list)
    for video, phrases in enumerate(narrations):
        for phrase in phrases:
            matters = phrase.verb in _MOVING or phrase.particle != ""
            separate = matters and places[phrase.key, phrase.where] >= enough
            found[phrase.key, phrase.where if separate else ""].append((video, phrase))
    kinds = []
    for (_, where), mentions in found.items():
        when = [min(1.0, p.time / max(durations[video], 1e-9)) for video, p in mentions]
        place = (sum(when) + _IMAGINED / 2) / (len(when) + _IMAGINED)
        phrase, name = mentions[0][1], _name([phrase for _, phrase in mentions])
        kinds.append(
            PhraseGroup(
                phrase._replace(where=where),
                name,
                tuple((video, one.time) for video, one in mentions),
                place,
            )
        )
    return sorted(kinds, key=lambda kind: (-len(kind.videos), kind.name))


def _name(phrases: Sequence[Phrase]) -> str:
    """Most frequent wording of the phrases of one kind, without possessives."""
    texts = Counter(_shared(one) for one in phrases if not one.text.endswith((" it", " them")))
    fallback = f"{phrases[0].verb} the {phrases[0].thing}"
    name = max(texts, key=lambda text: (texts[text], -len(text), text)) if texts else fallback
    places = Counter(one.where for one in phrases if " " in one.where)
    where, times = places.most_common(1)[0] if places else ("", 0)
    named = times >= max(_FEWEST, _SAME_PLACE * len(phrases))
    return f"{name} {where}" if named and where.split()[-1] not in name.split() else name


def _shared(phrase: Phrase) -> str:
    """Words of a phrase without possessives: *crack the eggs* for *crack my eggs*."""
    words = phrase.text.split()
    owned = [at for at, word in enumerate(words) if word in _OWNERS]
    words_left = [word for at, word in enumerate(words) if at not in owned[1:]]
    return " ".join("the" if word in _OWNERS else word for word in words_left)


def nearness(
    kinds: Sequence[PhraseGroup], others: Sequence[PhraseGroup], encode: Encode
) -> Floats:
    """Similarity of phrases to others, less the distance of their positions, shape (N, M)."""
    if not kinds or not others:
        return np.zeros((len(kinds), len(others)))
    whole, verbs, things = (
        (encode([part(one) for one in kinds]) @ encode([part(one) for one in others]).T)
        for part in (_whole, _verb, _thing)
    )
    found = ((whole + verbs + things) / 3).astype(np.float64)
    # A specific verb may represent a light one (*beat* for *take*), not vice versa.
    little = np.array([_says_little(one.phrase) for one in kinds])
    too = np.array([_says_little(one.phrase) for one in others])
    found = np.where(np.logical_and.outer(little, ~too), (whole + things) / 2, found)
    places = np.array([one.place for one in kinds]), np.array([one.place for one in others])
    found -= _APART * np.abs(np.subtract.outer(*places))
    found[np.logical_and.outer(~little, too)] = -1.0
    return found


def _whole(kind: PhraseGroup) -> str:
    return " ".join(filter(None, [kind.phrase.key, kind.phrase.where]))


def _verb(kind: PhraseGroup) -> str:
    return f"to {kind.phrase.verb} {kind.phrase.particle}".rstrip()


def _says_little(phrase: Phrase) -> bool:
    """Check for a light verb without a particle: *take the wheel*, but not *take it off*."""
    return phrase.verb in _LIGHT and not phrase.particle


def _thing(kind: PhraseGroup) -> str:
    return kind.phrase.thing


def names_a_step(kind: PhraseGroup) -> bool:
    """Check for a place, or for a verb that is specific without one."""
    return kind.phrase.where != "" or kind.phrase.verb not in _HANDLING


def nearest(
    kinds: Sequence[PhraseGroup], others: Sequence[PhraseGroup], encode: Encode
) -> NDArray[np.bool_]:
    """Mark the phrases that one of ``others`` represents, shape (N,)."""
    found: NDArray[np.bool_] = nearness(kinds, others, encode).max(axis=1, initial=-1.0) >= NEAR
    return found


def least_recurrence(videos: int) -> int:
    """Minimum number of videos that use the same words for these to be a name."""
    return max(_FEWEST, math.ceil(_SAME_WORDS * videos))


def choose(
    kinds: Sequence[PhraseGroup], encode: Encode, *, most: int, fewest: int, often: int
) -> list[Chosen]:
    """Choose phrases that together represent most others, weighted by videos, the best first.

    Parameters
    ----------
    most
        Maximum number of phrases.
    fewest
        Minimum number of videos that mention a phrase or one that it represents.
    often
        Minimum number of videos that mention the phrase itself.
    """
    candidates = [
        at for at, kind in enumerate(kinds) if len(kind.videos) >= often and names_a_step(kind)
    ]
    near = nearness(kinds, [kinds[at] for at in candidates], encode)
    worth = np.maximum(0.0, near - NEAR) / (1 - NEAR)
    worth[candidates, np.arange(len(candidates))] = 1.0
    weight = np.array([len(kind.videos) for kind in kinds], dtype=np.float64)
    order = cover(weight, worth, most)
    if not order:
        return []
    whose, stands = worth[:, order].argmax(axis=1), worth[:, order].max(axis=1) > 0
    chosen = []
    for number, candidate in enumerate(order):
        own = candidates[candidate]
        others = [at for at in np.flatnonzero(stands & (whose == number)).tolist() if at != own]
        chosen.append(Chosen(kinds[own], (kinds[own], *(kinds[at] for at in others))))
    return [one for one in chosen if len(one.videos) >= fewest]


def stood_for(
    kinds: Sequence[PhraseGroup], listed: Mapping[str, float], encode: Encode
) -> NDArray[np.bool_]:
    """Mark the phrases that a step of a list represents, shape (N,).

    Parameters
    ----------
    listed
        Names of the steps, with the position of each in a video, from 0 to 1.
    """
    if not kinds:
        return np.zeros(0, dtype=bool)
    read = {name: read_name(name) for name in listed}
    steps = [PhraseGroup(one, name, (), listed[name]) for name, one in read.items() if one]
    others = [name for name, one in read.items() if not one]
    stands = nearest(kinds, steps, encode)
    if others:  # what is no verb with an object is compared as a whole
        whole = encode([kind.name for kind in kinds]) @ encode(others).T
        stands |= whole.max(axis=1) >= NEAR_NAME
    return stands


def cover(weight: Floats, worth: Floats, most: int) -> list[int]:
    """Choose columns that together are worth most, each row by its best one (facility location).

    The choice is greedy: at least 63 % of the optimum (Nemhauser, Wolsey and Fisher 1978).

    Parameters
    ----------
    weight : shape (N,)
    worth : shape (N, M), from 0 to 1

    Examples
    --------
    >>> cover(np.array([3.0, 2.0, 2.0]), np.array([[1, 0, 0.9], [1, 0, 0], [0, 1, 1]]), 2)
    [0, 1]
    """
    got = np.zeros(len(weight))
    order: list[int] = []
    while len(order) < most and worth.size:
        gain = weight @ np.maximum(0.0, worth - got[:, None])
        best = int(gain.argmax())
        if gain[best] <= 0:
            break
        order.append(best)
        got = np.maximum(got, worth[:, best])
    return order


def title_near(
    kinds: Sequence[PhraseGroup], titles: Sequence[Phrase], encode: Encode
) -> list[bool]:
    """Mark the phrases that only repeat the title of a video."""
    if not titles:
        return [False] * len(kinds)
    named = [PhraseGroup(title, title.text, (), 0.5) for title in titles]
    level = [kind._replace(place=0.5) for kind in kinds]
    found = nearness(level, named, encode).max(axis=1, initial=-1.0)
    return [bool(near >= _SAME_AS_TITLE) for near in found.tolist()]


def examples(chosen: Chosen, videos: Sequence[Video]) -> tuple[Mention, ...]:
    """Collect up to three sentences that mention a step, each of another video."""
    found: dict[int, Mention] = {}
    for number, time in chosen.mentions:
        if number not in found:
            text = _around(videos[number].transcript, time)
            found[number] = Mention(videos[number].id, time, text)
        if len(found) == _EXAMPLES:
            break
    return tuple(found.values())


def _around(transcript: Sequence[Sentence], time: float) -> str:
    """Text of the sentence at a time and of the next one, at most 20 words."""
    at = max((n for n, one in enumerate(transcript) if one.start <= time), default=0)
    words = " ".join(one.text for one in transcript[at : at + 2]).split()
    return " ".join(words[:20])
