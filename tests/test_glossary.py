"""The glossary explains the words of options, JSON keys and class names, and no others."""

import argparse
import ast
import re
import tomllib
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

from stepgraph.cli.parser import make_parser

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "stepgraph"
DATA = ROOT / "tests" / "data"
GLOSSARY = ROOT / "docs" / "glossary.md"
# Words that need no explanation in this project.
PLAIN = DATA / "plain_words.txt"
# Rooms whose dictionaries are neither files nor output of users.
INTERNAL = ("networks", "training", "datasets", "ingest", "experiments")
# Functions whose keyword arguments are keys of JSON output.
WRITERS = ("say", "render", "as_json_text")
# Words and terms that are accepted for other reasons, which the file gives.
NAMES = tomllib.loads((DATA / "names.toml").read_text("utf-8"))
# Home-made words that the help must not have.
HOME_MADE = (
    *("heard", "said", "told", "tells", "believed", "clearly", "whoever", "habits?", "courses?"),
    *("so much", "so many", "as far as", "of which", "closeness", "departures?", "departs?"),
    *("usual", "stretch", "loose", "written order", "spoken of"),
)


def singular(word):
    """A word in lower case, without the ending of a plural."""
    word = word.lower().replace("recogniz", "recognis")
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if re.search(r"(ch|sh|x|ss)es$", word):
        return word[:-2]
    return word[:-1] if re.search(r"[^siu]s$", word) and len(word) > 3 else word


@cache
def stem(word):
    """A word without the usual endings, so that an entry explains *mine*, *mined* and *miner*."""
    bare = re.sub(r"(ations?|ions?|ings?|ers?|ors?|ed|es|s|e|y)$", "", singular(word))
    bare = re.sub(r"([dglmnpt])\1$", r"\1", bare)
    return bare if len(bare) > 2 else singular(word)


def words_of(name):
    """The words of an identifier or of a text, with at least two letters."""
    found = re.findall(r"[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]+", name)
    return [word for word in found if len(word) > 1]


def stems_of(text):
    return " " + " ".join(map(stem, words_of(text))) + " "


@cache
def entries():
    """Text by bold term; an entry with several terms stands under each."""
    found = defaultdict(list)
    for entry in re.split(r"\n(?=- \*\*|#|\n)", GLOSSARY.read_text("utf-8")):
        if entry.startswith("- **"):
            head, text = re.split(r":\s", entry, maxsplit=1)
            for term in re.findall(r"\*\*([^*]+)\*\*", head):
                found[term].append(" ".join(text.split()))
    return dict(found)


@cache
def explained():
    heads = " ".join(entries())
    return {stem(word) for word in words_of(f"{heads} {heads.lower()}")}


@cache
def sources():
    paths = sorted(PACKAGE.rglob("*.py"))
    return [(path.relative_to(PACKAGE), ast.parse(path.read_bytes())) for path in paths]


@cache
def parsers():
    """Parsers of all verbs and questions by name, and that of the program."""

    def below(name, parser):
        yield name, parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for verb, inner in action.choices.items():
                    yield from below(f"{name} {verb}", inner)

    return dict(below("stepgraph", make_parser()))


def names_of_options():
    for name, parser in parsers().items():
        yield name
        for action in parser._actions:
            yield from action.option_strings
            choices = re.findall(r"[\w-]+(?=[|,])|(?<=[|,])[\w-]+", str(action.metavar or ""))
            yield from map(str, [*(action.choices or ()), *choices])


def json_keys():
    """Keys of dictionaries, and fields of the records that are written as dictionaries."""
    for path, tree in sources():
        if path.parts[0] in INTERNAL:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict):
                keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
                yield from (key for key in keys if re.fullmatch("[a-z][a-z0-9_-]*", str(key)))
            elif isinstance(node, ast.Call):
                if getattr(node.func, "attr", getattr(node.func, "id", "")) in WRITERS:
                    yield from (key.arg for key in node.keywords if key.arg)
            elif isinstance(node, ast.ClassDef) and node.name[0] != "_":
                kinds = [*node.bases, *node.decorator_list]
                if any(re.match("NamedTuple|dataclass", ast.unparse(kind)) for kind in kinds):
                    fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
                    yield from (one.target.id for one in fields if one.target.id[0] != "_")


def names_of_classes():
    for _, tree in sources():
        yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


@cache
def texts():
    """Stems of all that a reader meets outside the glossary."""
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path != GLOSSARY]
    found = [page.read_text("utf-8") for page in [ROOT / "README.md", *pages]]
    found += [parser.format_help() for parser in parsers().values()]
    found += [*json_keys(), *names_of_classes()]
    for _, tree in sources():
        alone = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
        found += [str(node.value) for node in alone if isinstance(node, ast.Constant)]
    return "".join(map(stems_of, found))


@pytest.mark.parametrize("collect", [names_of_options, json_keys, names_of_classes])
def test_every_word_of_a_name_is_in_the_glossary_or_plain(collect):
    plain = PLAIN.read_text("utf-8").split()
    others = [word for kind in ("proper", "foreign", "former") for word in NAMES[kind].split()]
    known = {singular(word) for word in [*plain, *others]}
    unknown = defaultdict(set)

    for name in collect():
        for word in words_of(name):
            if singular(word) not in known and stem(word) not in explained():
                unknown[singular(word)].add(name)

    found = ", ".join(f"{word} ({sorted(names)[0]})" for word, names in sorted(unknown.items()))
    assert not found, f"explain it in docs/glossary.md: {found}"


def test_names_of_others_are_in_the_docs():
    pages = " ".join(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md")).lower()

    assert not [name for name in NAMES["proper"].split() if name not in pages]


def test_plain_words_are_sorted_and_no_terms():
    plain = PLAIN.read_text("utf-8").split()

    assert plain == sorted(set(plain))
    assert not {singular(term) for term in entries()} & set(map(singular, plain))


def test_terms_are_unique_and_explained_in_one_to_three_sentences():
    counts = Counter(term.lower() for term, found in entries().items() for _ in found)
    assert [term for term, count in counts.items() if count > 1] == []
    for term, [text] in entries().items():
        sentences = re.findall(r"[.!?](?=\s|$)", re.sub(r"`[^`]*`", "", text))
        assert 1 <= len(sentences) <= 3, term


def test_every_term_is_used_outside_the_glossary():
    dead = set(entries()) - set(NAMES["coming"])
    for term in sorted(dead):
        if any(stems_of(form) in texts() for form in re.split(r"\s*[()]", term) if form):
            dead.remove(term)

    assert not dead


def test_help_has_no_home_made_words():
    for verb, parser in parsers().items():
        text = " ".join(parser.format_help().split())
        found = re.findall(rf"\b(?:{'|'.join(HOME_MADE)})\b", text, re.IGNORECASE)
        assert not found, f"{verb}: {found}"
