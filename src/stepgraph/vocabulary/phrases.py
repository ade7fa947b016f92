"""Phrases that name an action: a verb and its object, found in transcripts by rules.

Captions have no punctuation and break anywhere, so the words of a whole transcript are read as one
stream, cut only at marks and pauses.  A dictionary lists which words can be verbs or nouns; their
neighbours decide which they are.  Verbs that name no visible action (*thank*, *subscribe*, *own*,
*need*) and negated verbs are left out.  The rules are those of English.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from stepgraph.core import Sentence

# Seconds of silence that end a sentence, and within which *it* refers to the last object.
_PAUSE, _REMEMBERED = 1.5, 20.0
_TOKEN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|[.,;:!?()\[\]]|\d[\d/.]*")
_LONGEST_NOUN = 3


def words_in(text: str) -> frozenset[str]:
    """Set of the words of a text."""
    return frozenset(text.split())


_DETERMINERS = words_in(
    "the a an this that these those my your our his her their its some any all both each every "
    "another other more enough one two three four five six seven eight nine ten half several "
    "many few little couple whole entire"
)
_ARTICLES = words_in("the a an my your our")
_PARTICLES = words_in("up out off down back away apart together")
# These most often lead on to a place (*put in the oven*); with some verbs they do not, and not
# where the sentence goes on without a name (*put the wheel on and*).
_PARTICLES_OF = {
    "in": words_in("add mix stir whisk fold pour throw toss beat blend sprinkle"),
    "on": words_in("turn switch screw put"),
    "over": words_in("flip turn fold"),
}
# What stands before a verb in its plain form, and what before any other form of one.
_BEFORE_VERB = words_in(
    "i we you they will gonna can could should would must please let's lets i'll we'll you'll "
    "they'll i'd you'd we'd i've we've you've"
)
# *Going to heat* is a verb, *down to room temperature* is none.
_BEFORE_TO = words_in(
    "going want need have has had got able ready how like try trying start started order sure "
    "you time wants needs about used way just me us now is was"
)
_BEFORE_PARTICIPLE = words_in(
    "i'm we're you're they're i we you they i've we've you've have has be been start started "
    "by just am are after before keep"
)
_NOT = words_in("don't not never didn't doesn't won't can't couldn't wouldn't shouldn't without")
# What no verb of doing follows: it is then a noun (*the whisk*, *of salt*).
_BEFORE_NOUN = words_in(
    "the a an my your our his her their its this that these those some any no every each of in "
    "on with for from by into onto at as about very more most so too what which whose how much "
    "many under between against over than is are was were be been am it's that's there's "
    "here's i'm you're we're they're isn't wasn't"
)
_NO_VERB_AFTER = (_BEFORE_NOUN | _DETERMINERS) - _BEFORE_PARTICIPLE
# These are written like nouns and verbs but join words.
_JOINING = words_in(
    "and or but so then if when while until because as than like of in on at to for from with "
    "by into onto over under about after before through between against around along off up "
    "down out back away again just now here there very really pretty too also only even still "
    "not is are was were be been am have has had do does did will would can could should may "
    "might must i you we they he she it me us them him her who what which where how why this "
    "that these those the a an my your our his their its some any no all both each okay ok um "
    "uh yeah yes well oh right guys gonna wanna gotta going kind sort bit lot way don't i'm "
    "it's that's let's we're you're they're i'll we'll you'll i've we've you've there's here's "
    "actually basically probably maybe already once twice always never first last next aside "
    "inside outside underneath forward upside round straight high low enough till tonight "
    "today together apart everything something anything nothing else"
)
_TALK = words_in(
    "be have do go come say tell talk speak mention call name ask answer know think mean guess "
    "believe remember forget understand see look watch show view want need like love enjoy "
    "hate hope wish feel seem appear become happen thank welcome subscribe comment click visit "
    "follow share join support let try start begin stop finish end continue keep help learn "
    "teach explain demonstrate find discover notice realize decide choose prefer recommend "
    "suggest advise live stay wait own buy purchase cost pay spend save sell bring give offer "
    "deserve win lose play read write hear listen sound smell taste eat drink serve might may "
    "can will shall would could should must get got use make require include contain involve "
    "depend plan figure care worry bother matter bet suppose assume imagine wonder consider "
    "agree promise swear apologize excuse recap review film record upload post link text "
    "sponsor work run create provide allow cause prevent avoid ensure deal last stand sit walk "
    "meet greet miss touch"
)
_NOT_OBJECTS = words_in(
    "time day way thing lot bit kind sort video channel comment button link question look "
    "chance second minute hour week month year moment today tomorrow morning night people guy "
    "friend somebody someone something anything everything nothing everybody everyone stuff "
    "idea reason fun luck love life world god job work difference sense example step recipe "
    "part end beginning rest side top bottom middle one other half couple amount number size "
    "degree case word name mom dad kid baby wife husband brother sister girl boy man woman "
    "lady gentleman mother father son daughter music applause laughter hand picture camera "
    "internet website page money price dollar brand company store market type version style "
    "place home care access advantage temperature direction"
)
_MEASURES = words_in(
    "slice piece cup teaspoon tablespoon pinch dash bit couple lot pair bunch handful amount "
    "drop layer splash ounce pound gram liter quarter half spoonful spoon stick loaf can "
    "bottle jar bag box pack packet set kind sort type one some all each most rest tad touch "
    "sprinkle cube chunk clove sheet strip inch"
)


_TO_PLACES = words_in("in into on onto from off under underneath over out inside")
_STANDS_FOR_PLACE = words_in("it them there here this that these those top what which me you us")


class Phrase(NamedTuple):
    """An action that a transcript mentions.

    Attributes
    ----------
    time
        Time of the verb, in seconds.
    verb, thing
        The verb and its object, in the form in which dictionaries list them.
    text
        The phrase as in the transcript, with the verb in its plain form.
    where
        Place or direction, if it is mentioned: *in the pan*, *off*.
    """

    time: float
    verb: str
    thing: str
    text: str
    where: str = ""

    @property
    def key(self) -> str:
        """Verb and object, which phrases of the same action share."""
        return f"{self.verb} {self.thing}"

    @property
    def particle(self) -> str:
        """Particle that changes the verb: *up*, *off*; empty for a place and for *in*."""
        return "" if " " in self.where or self.where == "in" else self.where


class _Word(NamedTuple):
    time: float
    text: str


class Usage:
    """Counts of each word of a corpus as a verb, less those as a noun.

    Only unambiguous uses count: *to whisk*, *we whisk* against *the whisk*, *of whisk*.
    """

    def __init__(self, transcripts: Iterable[Sequence[Sentence]]) -> None:
        self._verbs: Counter[str] = Counter()
        for words in chain.from_iterable(map(_sentences, transcripts)):
            for at, word in enumerate(words):
                if _leads_to_verb(words, at):
                    self._verbs[word.text] += 1
                elif at and words[at - 1].text in _BEFORE_NOUN:
                    self._verbs[word.text] -= 1

    def is_verb(self, word: str) -> bool:
        """Check that a word is more often a verb than a noun, or as often if it is only a verb."""
        return self._verbs[word] >= (not is_only_verb(word))

    def noun(self, word: str, before: str = "") -> str:
        """Plain form of a word as a noun, or empty; after an article any plain word is a noun.

        The dictionary has *pan* and *lug* as verbs alone, so their counts in the corpus decide.
        """
        found, verb = _noun(word), _verb(word)
        if found or word in _JOINING or word not in (verb, f"{verb}s"):
            return found
        used = self._verbs[verb] < -1 or (word == verb and before in _ARTICLES)
        return verb if used else ""


def find_phrases(transcript: Sequence[Sentence], usage: Usage) -> list[Phrase]:
    """Find the actions that a transcript mentions, in the order of their mentions.

    >>> texts = [Sentence(0.0, 4.0, "so now we're gonna whisk two eggs then you add the milk")]
    >>> [phrase.text for phrase in find_phrases(texts, Usage([texts]))]
    ['whisk two eggs', 'add the milk']
    """
    found: list[Phrase] = []
    for words in _sentences(transcript):
        reader = _Reader(words, usage)
        for at in range(len(words)):
            phrase = reader.phrase_at(at, found[-1] if found else None)
            if phrase is not None:
                found.append(phrase)
    return found


def content_words(transcript: Sequence[Sentence]) -> list[str]:
    """Words that can be nouns or verbs, in the form in which dictionaries list them.

    >>> content_words([Sentence(0.0, 2.0, "She is whisking the eggs")])
    ['whisk', 'egg']
    """
    texts = (word.text for words in _sentences(transcript) for word in words)
    plain = (_form(word, "NOUN") or _form(word, "VERB") for word in texts if word not in _JOINING)
    return [word for word in plain if word]


def joining_share(transcript: Sequence[Sentence]) -> float:
    """Share of the words that are English function words: about half in English text."""
    words = [word.text for words in _sentences(transcript) for word in words]
    return sum(word in _JOINING for word in words) / max(1, len(words))


def words_of_name(name: str) -> str:
    """Split the name of a file into words; empty if it is an id.

    >>> words_of_name("how-to-change-a-tire_02"), words_of_name("zuKpxwA2YVk")
    ('how to change a tire', '')
    """
    words = [word for word in re.split(r"[\W\d_]+", name.casefold()) if word]
    are_words = all(word in _JOINING or (len(word) > 2 and _lemmas(word)) for word in words)
    return " ".join(words) if are_words else ""


def read_name(name: str) -> Phrase | None:
    """Read a step of a list as a phrase, if it is a verb and its object.

    >>> read_name("Whisk the eggs").key
    'whisk egg'
    """
    words = [_Word(0.0, word) for word in _TOKEN.findall(name.casefold().replace("’", "'"))]
    return _Reader(words, Usage([])).read(0, None) if words else None


def find_titles(transcript: Sequence[Sentence], usage: Usage, name: str = "") -> list[Phrase]:
    """Find titles of a video: phrases after *how to* in its speech, and the name of its file.

    Parameters
    ----------
    name
        Words of the file name, as :func:`words_of_name` gives them.
    """
    found = []
    for words in _sentences(transcript):
        reader = _Reader(words, usage)
        for at in range(2, len(words)):
            if (words[at - 2].text, words[at - 1].text) == ("how", "to"):
                found.append(reader.read(at, None))
    named = [_Word(0.0, word) for word in name.removeprefix("how to ").split()]
    if named:
        found.append(_Reader(named, usage).read(0, None))
    return [phrase for phrase in found if phrase is not None]


def _sentences(transcript: Sequence[Sentence]) -> Iterator[list[_Word]]:
    """Words with their times, cut at marks and pauses."""
    words: list[_Word] = []
    last = 0.0
    for start, end, text in transcript:
        if words and start - last > _PAUSE:
            yield words
            words = []
        last = end
        tokens = _TOKEN.findall(text.casefold().replace("’", "'"))
        for number, token in enumerate(tokens):
            if token[0].isalnum():
                words.append(_Word(start + (end - start) * number / len(tokens), token))
            elif words:
                yield words
                words = []
    if words:
        yield words


def _leads_to_verb(words: Sequence[_Word], at: int) -> bool:
    before = words[at - 1].text if at else ""
    if before != "to":
        return before in _BEFORE_VERB
    return at > 1 and words[at - 2].text in _BEFORE_TO


class _Reader:
    """Parser of the phrases in one sentence."""

    def __init__(self, words: Sequence[_Word], usage: Usage) -> None:
        self._words = words
        self._usage = usage

    def _at(self, place: int) -> str:
        return self._words[place].text if 0 <= place < len(self._words) else ""

    def phrase_at(self, at: int, last: Phrase | None) -> Phrase | None:
        """Phrase whose verb stands at a position, or None."""
        word, before = self._at(at), self._at(at - 1)
        verb = _verb(word)
        if not verb or verb in _TALK or word in _JOINING or before in _NO_VERB_AFTER:
            return None
        if any(self._at(at - back) in _NOT for back in (1, 2, 3)):
            return None
        if (self._at(at - 2), before) == ("how", "to"):
            return None
        if word == verb:
            unambiguous = _leads_to_verb(self._words, at) or self._usage.is_verb(word)
        else:
            # *Powdered sugar*, *a cooking spray*: the other forms are most often adjectives.
            unambiguous = before in _BEFORE_PARTICIPLE
        return self.read(at, last) if unambiguous else None

    def read(self, at: int, last: Phrase | None) -> Phrase | None:
        """Phrase of the verb at a position and the object that follows, or None without one."""
        verb = _verb(self._at(at))
        place = at + 1
        particle = self._at(place) if _is_particle(self._at(place), verb) else ""
        first = place = place + bool(particle)
        while _is_determiner(self._at(place)):
            place += 1
        noun = self._noun_at(place, named=place > first)
        if noun is None or not verb:
            return self._of_last(at, verb, last)
        begin, end, thing = noun
        texts = [word.text for word in self._words[first if begin == place else begin : end]]
        text = [verb, *filter(None, [particle]), *texts]
        if not particle:  # what follows the object belongs to the verb: *jack the car up*
            follows = self._particles(end)
            text, end, particle = text + follows, end + len(follows), "".join(follows[-1:])
        return Phrase(
            self._words[at].time, verb, thing, " ".join(text), self._where(end) or particle
        )

    def _particles(self, place: int) -> list[str]:
        """The particles that follow an object: *up*, *back on*."""
        word, after = self._at(place), self._at(place + 1)
        if word == "back":
            return [word, *self._particles(place + 1)]
        goes_on = after in _JOINING and not _is_determiner(after)
        ends = not after or (goes_on and after not in _STANDS_FOR_PLACE)
        return [word] if word in _PARTICLES or (word in _PARTICLES_OF and ends) else []

    def _where(self, place: int) -> str:
        """Place that the words from a position on name, such as *in the pan*, or empty."""
        leads = self._at(place)
        if leads not in _TO_PLACES:
            return ""
        first = place = place + 1 + (self._at(place + 1) == "of")
        while _is_determiner(self._at(place)):
            place += 1
        noun = self._noun_at(place, named=place > first) if place > first else None
        leads = {"into": "in", "inside": "in", "onto": "on", "out": "from"}.get(leads, leads)
        return f"{leads} the {noun[2]}" if noun else ""

    def _of_last(self, at: int, verb: str, last: Phrase | None) -> Phrase | None:
        """Phrase whose object is *it* or *them*: the object of the last phrase, if recent."""
        time = self._words[at].time
        place = at + 1 + _is_particle(self._at(at + 1), verb)
        if not verb or last is None or self._at(place) not in ("it", "them"):
            return None
        if time - last.time > _REMEMBERED:
            return None
        particles = self._particles(place + 1)
        where = self._where(place + 1 + len(particles)) or "".join(particles[-1:])
        return Phrase(time, verb, last.thing, f"{verb} {self._at(place)}", where)

    def _noun_at(self, place: int, *, named: bool) -> tuple[int, int, str] | None:
        """Begin, end and plain last words of the noun phrase at a position, or None.

        Parameters
        ----------
        named
            True if an article stands before it, so that its first word is no verb.
        """
        end = place
        while end < place + _LONGEST_NOUN and self._belongs(end, named and end == place):
            end += 1
        while end > place and not self._noun(end - 1):
            end -= 1
        if end == place:
            return None
        head = self._noun(end - 1)
        if head in _MEASURES and self._at(end) == "of":
            after = end + 1
            while _is_determiner(self._at(after)):
                after += 1
            return self._noun_at(after, named=True)
        if head in _NOT_OBJECTS:
            return None
        before = self._at(end - 2) if end - place > 1 else ""
        joined = before and "ADJ" not in _lemmas(before)
        return place, end, f"{self._noun(end - 2) or before} {head}" if joined else head

    def _noun(self, place: int) -> str:
        return self._usage.noun(self._at(place), self._at(place - 1))

    def _belongs(self, place: int, named: bool) -> bool:
        word = self._at(place)
        if not word or word in _JOINING or word in _DETERMINERS:
            return False
        # After an article even what else is a verb is part of a name (*the lug nuts*); further
        # on it begins the next sentence, which no mark divides from this one.
        return named or not self._usage.is_verb(word)


def _is_particle(word: str, verb: str) -> bool:
    return word in _PARTICLES or verb in _PARTICLES_OF.get(word, ())


def _is_determiner(word: str) -> bool:
    return word in _DETERMINERS or word[:1].isdigit()


@lru_cache(maxsize=100_000)
def _lemmas(word: str) -> dict[str, tuple[str, ...]]:
    # Imported late: its dictionary takes a third of a second.
    from lemminflect import getAllLemmas

    found: dict[str, tuple[str, ...]] = getAllLemmas(word)
    return found


def _verb(word: str) -> str:
    return _form(word, "VERB")


def _form(word: str, part: str) -> str:
    """Dictionary form of a word as a part of speech; empty if the dictionary has none."""
    found = _lemmas(word).get(part, ())
    return word if word in found else found[0] if found else ""


def _noun(word: str) -> str:
    if len(word) < 2 or word in _JOINING:
        return ""
    # A word of no dictionary is most likely the name of something.
    return _form(word, "NOUN") if _lemmas(word) else word.removesuffix("'s")


def is_only_verb(word: str) -> bool:
    """Check that a word can be a verb, but neither a noun nor an adjective."""
    found = _lemmas(word)
    return "VERB" in found and "NOUN" not in found and "ADJ" not in found
