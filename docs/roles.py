"""Docstrings name others as Sphinx does, :func:`~package.name`; on the site that is plain code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:func|class|meth|mod|attr|data):`~?(?:[\w.]*\.)?(\w+)`")


class Roles(griffe.Extension):
    """Turn roles into code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = _ROLE.sub(r"`\1`", obj.docstring.value)
