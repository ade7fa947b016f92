"""Damage files: an input is a mapping from the names of files to their bytes.

Some damage knows nothing of formats; some keeps a container whole (JSON, zip, safetensors), so
that what is inside it is reached.  Everything is decided by the random numbers given.
"""

import io
import json
import re
import struct
import zipfile
from contextlib import suppress

from stepgraph.core import Vocabulary

LARGEST = 1 << 18
"""Bytes of the largest input; a reader must be quick with it."""

TOKENS = (
    *(b"-->", b"{\\", b"<", b"&#x0;", b"\x00", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\r"),
    *(b"\n\n", b"\t", b",", b'"', b'"""', b"'", b":", b";", b"#", b"[", b"]", b"{", b"}", b"\\"),
    *(b"\x1b[2J\x1b]0;x\x07", b"\x9b31m", b"\xc2\x9b", b"\xe2\x80\xa8", b"\xe2\x80\xae", b"\x85"),
    *(b"\xed\xa0\x80", b"\\ud800", b"\xf0\x9f\x8d\xb3", b"e\xcc\x81", b"\xff", b"\x80"),
    *(b"../../x", b"/", b"..", b"con", b"%s", b"%n", b"{0}", b"$(x)", b"`x`", b"a" * 300),
    *(b"null", b"true", b"[]", b"{}", b'""', b"<br/>", b"<!DOCTYPE x [<!ENTITY e 'x'>]>"),
    *(b"1:2:3", b"00:00:00.000 --> 00:00:00.000", b"167:59:50", b"99999999:59:59", b"9:99:99"),
    b"[" * 20_000,
    b'{"a":' * 20_000,
    b"(" * 3000,
    b"<p>" * 3000,
    b"{" * 120_000,
    b"<" * 120_000,
    b" " * 120_000,
    b"0:" * 60_000,
)
NUMBERS = (
    *(b"0", b"-1", b"1", b"-0", b"1e999", b"-1e999", b"1e-999", b"NaN", b"nan", b"Infinity"),
    *(b"2147483648", b"4294967295", b"9223372036854775807", b"9223372036854775808"),
    *(b"18446744073709551616", b"1e308", b"0.1", b"604799", b"604800.5", b"1e15", b"0x10"),
    *("١٢".encode(), b"1_000", b"1,5", b"00", b"9" * 400, b"1" * 5000),
)
_LONG = "@long@"  # becomes a number that Python does not print
VALUES = (
    *(None, True, False, 0, -1, 1, 0.5, 1e15, 2**31, 2**63, 2**64, 10**400, _LONG),
    *(float("nan"), float("inf"), -float("inf"), "", "x", "0", "NaN", "x" * 5000, "\ud800"),
    *("\x1b[31m", "\x00", "\u2028", "../../x", "/x", "a\nb", [], {}, [[]], [None], {"": None}),
    *([0, 1], [[0, 1, 1]], ["a", "a"], {"start": 0}, 604799, -0.0),
)
WHOLE = (0, 1, -1, 2, 127, 128, 255, 2**15, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, -(2**63))
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")


def damage(files, others, rng, *, names=False):
    """Damage an input in one to a few ways; ``others`` are inputs to take pieces from.

    ``names`` says whether files may get other names.
    """
    files = dict(files)
    for _ in range(min(8, 1 + int(rng.expovariate(0.9)))):
        name = rng.choice(sorted(files))
        if names and rng.random() < 0.06:
            content = files.pop(name)
            files[_renamed(name, rng)] = content
        elif len(files) > 1 and rng.random() < 0.02:
            del files[name]
        else:
            other = rng.choice(sorted(rng.choice(others).items()))[1]
            files[name] = _damaged(files[name], other, rng)[:LARGEST]
    return mended(files) if rng.random() < 0.5 else files


def mended(files):
    """Put the fingerprint of their keysteps, as they are now, into saved files that have one.

    Else nothing behind the check of the fingerprint would ever be reached.
    """
    found = dict(files)
    for name, data in files.items():
        if b'"fingerprint"' in data and data.startswith(b"{"):
            with suppress(Exception):  # what has no keysteps has no fingerprint
                content = json.loads(data)
                tasks = {task: tuple(members) for task, members in content["tasks"].items()}
                vocabulary = Vocabulary(tuple(content["keysteps"]), tasks)
                content["fingerprint"] = vocabulary.fingerprint
                found[name] = json.dumps(content).encode()
    return found


def _renamed(name, rng):
    """A name that a file can have, in the same folder."""
    folder, slash, last = name.rpartition("/")
    stem, dot, suffix = last.rpartition(".")
    token = rng.choice([*TOKENS[:60], b"x", b"\n", b"\x7f"])[:100].decode("utf-8", "replace")
    token = token.replace("/", "").replace("\0", "")
    at = rng.randrange(len(stem) + 1)
    new = (stem[:at] + token + stem[at:]) + dot + (suffix if rng.random() < 0.8 else token)
    return folder + slash + new if new.strip(".") and len(new.encode()) < 250 else name


def _damaged(data, other, rng):
    if rng.random() < 0.65:
        for structural in (_in_zip, _in_safetensors, _in_json, _in_line):
            changed = structural(data, rng)
            if changed is not None:
                return changed
    return rng.choice(_PLAIN)(data, other, rng)


def _in_zip(data, rng):
    """Damage one member of a zip archive, which stays whole."""
    if not data.startswith(b"PK"):
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {one: archive.read(one) for one in archive.namelist()}
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OSError):
        return None
    except Exception:  # zlib and others, on content that is damaged already
        return None
    if not members:
        return None
    name = rng.choice(sorted(members))
    if rng.random() < 0.1:
        members[_renamed(name, rng)] = members.pop(name)
    else:
        members[name] = _damaged(members[name], rng.choice(sorted(members.items()))[1], rng)
    out = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if rng.random() < 0.3 else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", method) as archive:
        for one, content in members.items():
            archive.writestr(zipfile.ZipInfo(one), content, method)
    return out.getvalue()


def _in_safetensors(data, rng):
    """Damage the JSON at the beginning of a safetensors file, and state its new length."""
    if len(data) < 10 or data[8:9] != b"{":
        return None
    (length,) = struct.unpack("<Q", data[:8])
    changed = _in_json(data[8 : 8 + length], rng) if length < len(data) else None
    return (
        None if changed is None else struct.pack("<Q", len(changed)) + changed + data[8 + length :]
    )


def _in_json(data, rng):
    """Replace, drop, repeat or wrap one value of a JSON text."""
    if data.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return None
    places = list(_places(content))
    if not places:
        return None
    holder, key = rng.choice(places)
    try:
        _change(holder, key, rng)
        text = json.dumps(content, ensure_ascii=rng.random() < 0.7)
    except (ValueError, RecursionError, OverflowError):
        return None
    return text.replace(f'"{_LONG}"', "1" * 5000).encode("utf-8", "surrogatepass")


def _places(content):
    """Every holder and key in nested lists and objects."""
    waiting = [content]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            yield holder, key
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])


def _change(holder, key, rng):
    how = rng.randrange(8)
    value = json.loads(json.dumps(holder[key]))
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, list):
        holder[key:key] = [value] * rng.choice((1, 2, 1000))
    elif how == 2 and isinstance(holder, dict):
        holder[str(rng.choice(VALUES))[:300]] = holder.pop(key)
    elif how == 3:
        for _ in range(rng.choice((1, 5, 2000))):
            value = [value]
        holder[key] = value
    elif how == 4 and isinstance(value, str):
        at = rng.randrange(len(value) + 1)
        token = rng.choice(TOKENS)[:400].decode("utf-8", "surrogateescape")
        holder[key] = value[:at] + token + value[at:]
    elif how == 5 and isinstance(value, int | float):
        holder[key] = value * rng.choice((-1, 2, 0.5, 1e6)) + rng.choice((-1, 0, 1))
    else:
        holder[key] = rng.choice(VALUES)


def _in_line(data, rng):
    """Damage one line of lines: its JSON, a cell, its place, or its number of times."""
    lines = data.split(b"\n")
    if len(lines) < 2 or b"\0" in data[:100]:
        return None
    at = rng.randrange(len(lines))
    how = rng.randrange(6)
    if how == 0:
        del lines[at]
    elif how == 1:
        lines[at:at] = [lines[at]] * rng.choice((1, 2, 50))
    elif how == 2:
        lines.insert(rng.randrange(len(lines)), lines.pop(at))
    elif how == 3 and (changed := _in_json(lines[at], rng)) is not None:
        lines[at] = changed
    else:
        mark = rng.choice((b",", b"\t", b" ", b"}{", b">", b":"))
        cells = lines[at].split(mark)
        place = rng.randrange(len(cells))
        cells[place] = rng.choice(rng.choice((TOKENS, NUMBERS, (b"", cells[0], cells[-1]))))
        lines[at] = mark.join(cells)
    return b"\n".join(lines)


def _flip(data, _, rng):
    changed = bytearray(data or b"\0")
    for _ in range(rng.choice((1, 1, 2, 8))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _truncate(data, _, rng):
    return data[: rng.randrange(len(data) + 1)]


def _cut(data, _, rng):
    begin, end = _range(data, rng)
    return data[:begin] + data[end:]


def _repeat(data, _, rng):
    begin, end = _range(data, rng)
    times = min(rng.choice((1, 2, 20, 2000)), LARGEST // max(1, end - begin))
    return data[:end] + data[begin:end] * times + data[end:]


def _insert(data, _, rng):
    at = rng.randrange(len(data) + 1)
    token = rng.choice(rng.choice((TOKENS, NUMBERS))) if rng.random() < 0.8 else rng.randbytes(4)
    after = at if rng.random() < 0.6 else min(len(data), at + len(token))
    return data[:at] + token + data[after:]


def _number(data, _, rng):
    """Put another number in the place of one that is written in digits."""
    found = list(_NUMBER.finditer(data[:20_000]))
    if not found:
        return _whole(data, _, rng)
    one = rng.choice(found)
    return data[: one.start()] + rng.choice(NUMBERS) + data[one.end() :]


def _whole(data, _, rng):
    """Put a number of one to eight bytes somewhere, as binary formats have them."""
    size = rng.choice((1, 2, 4, 8))
    value = rng.choice(WHOLE) % (1 << (8 * size))
    at = rng.randrange(len(data) + 1)
    return data[:at] + value.to_bytes(size, rng.choice(("little", "big"))) + data[at + size :]


def _splice(data, other, rng):
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _transplant(data, other, rng):
    begin, end = _range(other, rng)
    at = rng.randrange(len(data) + 1)
    return data[:at] + other[begin:end] + data[at + (end - begin) * rng.randrange(2) :]


def _range(data, rng):
    """Where a piece begins and ends: more often a short one."""
    begin = rng.randrange(len(data) + 1)
    return begin, min(len(data), begin + int(rng.expovariate(1 / 40)) + 1)


_PLAIN = (
    *(_flip, _truncate, _cut, _repeat, _insert, _insert, _number, _number),
    *(_whole, _splice, _transplant),
)
