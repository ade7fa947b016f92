"""Features on disk: written once by an encoder, read as often as one likes.

A folder that :func:`encode_to` filled says in ``features.json`` which encoder that was, and has
one ``<video>.npz`` a video.  A folder without it, or one file with a table for each video, is
somebody else's: tables of rows by dimensions (:mod:`stepgraph.tables`) at a rate that the user
knows.
"""

from __future__ import annotations

from stepgraph.features.encoder import StoredEncoder, make_stored
from stepgraph.features.filling import Encoded, Failure, encode_to
from stepgraph.features.store import FeatureStore

__all__ = ["Encoded", "Failure", "FeatureStore", "StoredEncoder", "encode_to", "make_stored"]
