"""Label a corpus with the task graph: the pseudo-labelled corpus D' of the paper.

One row a clip, in parquet files that any program reads; the labels of plain argmax stand
beside those of the graph, so that a model can be trained on either.
"""
