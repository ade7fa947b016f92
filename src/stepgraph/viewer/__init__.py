"""Look into results: search in them.

>>> from stepgraph.viewer.searching import Index
"""
