"""Small mistakes in a program: which could be made in a file, one at a time.

``<`` for ``<=``, ``+`` for ``-``, ``and`` for ``or``, ``max`` for ``min``, a number one off or
doubled, a slice one longer, a sign or a call left out, the two sides of a choice exchanged, a
loop ended instead of continued, another variable returned.  Left alone is what no test could
notice by what it does: annotations, decorators, imports, what is said in errors and f-strings,
text, ``assert`` and ``strict=``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

_COMPARED = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is},
}
_COMPUTED = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult},
    **{ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr},
    **{ast.LShift: ast.RShift, ast.RShift: ast.LShift},
}
_PAIRS = ["max min", "argmax argmin", "maximum minimum", "any all", "ceil floor", "zeros ones"]
_CALLED = {one: other for pair in _PAIRS for one, other in (pair.split(), reversed(pair.split()))}


class Mutant(NamedTuple):
    """One changed place of a file: which bytes, and what stands there instead."""

    start: int
    end: int
    text: str
    kind: str

    def apply(self, source: bytes) -> bytes:
        """The file with the mistake in it."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def find_mutants(source: str) -> list[Mutant]:
    """Every mistake that could be made in a file, in the order of its lines."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, names in _walk(ast.parse(source), frozenset()):
        for kind, changed in _changes(node, names):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            text = ast.unparse(changed)
            if isinstance(node, ast.expr) and not isinstance(node, ast.Constant | ast.Slice):
                text = f"({text})"
            found.append(Mutant(start, end, text, kind))
    before = ast.dump(ast.parse(source))
    return sorted(one for one in set(found) if _differs(one.apply(source.encode()), before))


def _differs(source: bytes, before: str) -> bool:
    """Whether it is a program at all, and another one: neither needs a test to be noticed."""
    try:
        compile(source, "mutant", "exec")
        return ast.dump(ast.parse(source)) != before
    except SyntaxError:
        return False


def _walk(node: ast.AST, names: frozenset[str]) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """Every node that decides something, with the variables of its function."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return  # what is said is the tests' own affair
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return  # it guards against mistakes, and is none
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.FunctionDef):
        inside = [one for one in ast.walk(node) if isinstance(one, ast.Name | ast.arg)]
        stored = (o for o in inside if isinstance(o, ast.arg) or isinstance(o.ctx, ast.Store))
        names = frozenset(o.arg if isinstance(o, ast.arg) else o.id for o in stored)
    yield node, names
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child, names)


def _changes(node: ast.AST, names: frozenset[str]) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare(left, [op], right) if type(op) in _COMPARED:
            yield "compare", ast.Compare(left, [_COMPARED[type(op)]()], right)
        case ast.Compare(left, ops, right) if len(ops) > 1:
            for at, op in enumerate(ops):
                if type(op) in _COMPARED:
                    other = [*ops[:at], _COMPARED[type(op)](), *ops[at + 1 :]]
                    yield "compare", ast.Compare(left, other, right)
        case ast.BinOp(left, op, right) if type(op) in _COMPUTED:
            yield "compute", ast.BinOp(left, _COMPUTED[type(op)](), right)
        case ast.AugAssign(target, op, value) if type(op) in _COMPUTED:
            yield "compute", ast.AugAssign(target, _COMPUTED[type(op)](), value)
        case ast.BoolOp(op, values):
            yield "and/or", ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.Invert(), operand):
            yield "dropped sign", operand
        case ast.IfExp(test, body, orelse):
            yield "swapped", ast.IfExp(test, orelse, body)
        case ast.Constant(bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(int(value)):
            yield "constant", ast.Constant(value + 1)
            yield "constant", ast.Constant(value - 1)
        case ast.Constant(float(value)):
            yield "constant", ast.Constant(value * 2 if value else 1.0)
        case ast.Call(ast.Name(name), args, keywords) if name in _CALLED:
            yield "called", ast.Call(ast.Name(_CALLED[name]), args, keywords)
        case ast.Attribute(value, name) if name in _CALLED:
            yield "called", ast.Attribute(value, _CALLED[name])
        case ast.Slice(lower, upper, None) if lower or upper:
            yield "slice", ast.Slice(lower, None if lower else _one_more(upper))
            yield "slice", ast.Slice(_one_more(lower) if lower else ast.Constant(1), upper)
        case ast.Continue():
            yield "loop", ast.Break()
        case ast.Break():
            yield "loop", ast.Continue()
        case ast.Return(ast.Name(name)):
            for other in sorted(names - {name, "self", "cls"})[:3]:
                yield "returned", ast.Return(ast.Name(other))
        case ast.Expr(ast.Call()) | ast.AugAssign():
            yield "left out", ast.Pass()


def _one_more(bound: ast.expr | None) -> ast.expr | None:
    return bound and ast.BinOp(bound, ast.Add(), ast.Constant(1))
