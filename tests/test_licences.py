"""What the install and its extras bring along may be used by anyone, and has no known holes."""

import os
import re
import subprocess
import sys

import pytest
from benchmarks.sizes import extras, install

# As in SPDX, and in the older words of metadata.  Whoever passes these on owes a notice, no more.
UNANNOTATED = {
    *("0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause"),
    *("BSL-1.0", "CC0-1.0", "CNRI-Python", "ISC", "MIT", "MIT-0", "PSF-2.0", "Unlicense", "Zlib"),
    *("MIT-CMU", "BSD", "BSD License", "3-Clause BSD License", "MIT License", "ISC License"),
    *(
        "Apache 2.0",
        "Apache 2.0 License",
        "Apache Software License",
        "Python Software Foundation License",
    ),
}
# The Mozilla licence asks for the source of changed files of the package itself; we change none,
# and what uses the package keeps its own licence.
WEAK = {
    "orjson": "MPL-2.0",  # of a part that comes from elsewhere; the rest is Apache-2.0 or MIT
    "tqdm": "MPL-2.0",  # of its older parts; newer ones are MIT
    "certifi": "MPL-2.0",  # a list of certificates
    "pathspec": "MPL-2.0",  # only makes the documentation
}
# Wheels hold libraries of which their metadata does not speak.  That of PyAV, in the extra video,
# holds FFmpeg under the LGPL, and beside it two encoders under the GPL, in files of their own.
# Who installs it gets them from its makers, we pass none of it on; who hands on a whole
# environment owes what these licences ask, or installs a PyAV of his own without the two.
COPYLEFT_INSIDE = {"av": {"libx264", "libx265"}}
# Packages that do not tell, or not in a form that can be read: what their own files say.
UNTOLD: dict[str, str] = {}


DEFAULT = install()[0]
EXTRAS = extras()
INSTALLED = install(*EXTRAS)[0]


def licence_of(name):
    """What the metadata says: an expression, or else classifiers, or else a short field."""
    said = INSTALLED[name].metadata
    if said.get("License-Expression"):
        return said["License-Expression"]
    told = [c for c in said.get_all("Classifier") or () if c.startswith("License :: ")]
    classes = [c.rpartition(" :: ")[2] for c in told if not c.endswith("OSI Approved")]
    if classes:
        joined = " AND ".join(c.partition(" (")[0] for c in classes)
        return joined.replace("Mozilla Public License 2.0", "MPL-2.0")
    field = said.get("License") or ""
    return UNTOLD.get(name, field if len(field) < 100 else "")


def bundled_in(name):
    """Names of the libraries that a wheel on Linux brings along, without versions."""
    files = (file.name for file in INSTALLED[name].files or () if ".libs" in str(file.parent))
    return {re.split(r"[-.]", file)[0] for file in files}


def terms(expression):
    """The licences of an expression; of alternatives, all of them: so none need be chosen."""
    parts = re.split(r" AND | OR |[()]", expression)
    return [part.strip() for part in parts if part.strip()]


def test_the_default_install_was_walked():
    assert {"torch", "numpy", "transformers", "tokenizers"} <= DEFAULT.keys()
    assert not {"pytest", "mypy", "av", "h5py", "pyarrow"} & DEFAULT.keys()


def test_the_extras_were_walked():
    assert {"video", "speech", "train"} <= set(EXTRAS)
    assert {"h5py", "pyarrow", "tensorboard"} <= INSTALLED.keys()
    assert not {"pytest", "mypy"} & INSTALLED.keys()


@pytest.mark.parametrize("name", sorted(INSTALLED))
def test_licences_ask_for_no_more_than_a_notice(name):
    found = terms(licence_of(name))

    assert found, f"{name} does not tell its licence; look into its files, and add it to UNTOLD"
    wrong = [term for term in found if term not in UNANNOTATED and term != WEAK.get(name)]
    assert not wrong, f"{name} is under {wrong}; see FREE and WEAK above"


def test_copyleft_inside_a_wheel_is_as_stated():
    av = pytest.importorskip("av._core", reason="FFmpeg tells its licence through PyAV")
    if not (bundled := bundled_in("av")):
        pytest.skip("this PyAV uses the FFmpeg of the system")

    told = {one["license"] for one in av.library_meta.values()}

    assert all(licence.startswith("LGPL") for licence in told)
    assert bundled & {"libx264", "libx265", "libxvidcore", "libpostproc"} <= COPYLEFT_INSIDE["av"]
    assert not DEFAULT.keys() & COPYLEFT_INSIDE.keys()


@pytest.mark.parametrize("licence", ["GPL-3.0-only", "LGPL-2.1+", "AGPL-3.0", "MPL-2.0", "??"])
def test_copyleft_and_unknown_licences_are_not_free(licence):
    assert licence not in UNANNOTATED


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
