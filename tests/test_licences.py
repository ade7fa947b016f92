"""What the default install brings along may be used by anyone, and has no known holes."""

import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution

import pytest

packaging = pytest.importorskip("packaging.requirements", reason="reads requirements")

# As in SPDX, and in the older words of metadata.  Whoever passes these on owes a notice, no more.
FREE = {
    *("0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause"),
    *("BSL-1.0", "CC0-1.0", "CNRI-Python", "ISC", "MIT", "MIT-0", "PSF-2.0", "Unlicense", "Zlib"),
    *("BSD", "BSD License", "MIT License", "ISC License"),
    *("Apache 2.0 License", "Apache Software License", "Python Software Foundation License"),
}
# The Mozilla licence asks for the source of changed files of the package itself; we change none,
# and what uses the package keeps its own licence.
WEAK = {
    "orjson": "MPL-2.0",  # of a part that comes from elsewhere; the rest is Apache-2.0 or MIT
    "tqdm": "MPL-2.0",  # of its older parts; newer ones are MIT
    "certifi": "MPL-2.0",  # a list of certificates
}
# Packages that do not tell, or not in a form that can be read: what their own files say.
UNTOLD: dict[str, str] = {}


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def default_install():
    """The distributions that stepgraph needs without any extra, whatever they need included."""
    found, waiting = {}, ["stepgraph"]
    while waiting:
        name = canonical(waiting.pop())
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:  # for another system, though its marker does not say so
            continue
        for line in found[name].requires or ():
            requirement = packaging.Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    del found["stepgraph"]
    return found


INSTALLED = default_install()


def licence_of(name):
    """What the metadata says: an expression, or else classifiers, or else a short field."""
    said = INSTALLED[name].metadata
    if said.get("License-Expression"):
        return said["License-Expression"]
    classes = [c.rpartition(" :: ")[2] for c in said.get_all("Classifier") or () if "License" in c]
    if classes:
        return " AND ".join(c.partition(" (")[0] for c in classes)
    field = said.get("License") or ""
    return UNTOLD.get(name, field if len(field) < 100 else "")


def terms(expression):
    """The licences of an expression; of alternatives, all of them: so none need be chosen."""
    parts = re.split(r" AND | OR |[()]", expression)
    return [part.strip() for part in parts if part.strip()]


def test_the_default_install_was_walked():
    assert {"torch", "numpy", "transformers", "tokenizers"} <= INSTALLED.keys()
    assert not {"pytest", "mypy", "av", "h5py", "pyarrow"} & INSTALLED.keys()


@pytest.mark.parametrize("name", sorted(INSTALLED))
def test_licences_ask_for_no_more_than_a_notice(name):
    found = terms(licence_of(name))

    assert found, f"{name} does not tell its licence; look into its files, and add it to UNTOLD"
    wrong = [term for term in found if term not in FREE and term != WEAK.get(name)]
    assert not wrong, f"{name} is under {wrong}; see FREE and WEAK above"


@pytest.mark.parametrize("licence", ["GPL-3.0-only", "LGPL-2.1+", "AGPL-3.0", "MPL-2.0", "??"])
def test_copyleft_and_unknown_licences_are_not_free(licence):
    assert licence not in FREE


def test_no_installed_package_has_a_known_hole():
    if not os.environ.get("STEPGRAPH_AUDIT"):
        pytest.skip(
            "pip-audit has no database of its own, it asks those of the net: where they can be "
            "reached, install pip-audit and set STEPGRAPH_AUDIT=1"
        )
    options = ("--strict", "--no-deps", "--disable-pip", "-r", "/dev/stdin")
    listed = "\n".join(f"{name}=={one.version.split('+')[0]}" for name, one in INSTALLED.items())

    done = subprocess.run(
        [sys.executable, "-m", "pip_audit", *options],
        input=listed,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr
