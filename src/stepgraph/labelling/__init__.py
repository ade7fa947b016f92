"""Pseudo-labels of a corpus from the task graph: the corpus D' of the paper.

Parquet files have one row a clip, and any program can read them.  The labels of plain argmax
are stored beside those of the graph, so that a model can be trained on either.
"""
