"""Does bfloat16 change what is recognised?  ``python -m benchmarks.precision SOURCE``.

Encodes a source in float32 and in bfloat16, and prints how often the best keystep of a sentence
is the same, the least cosine of any sentence with itself, and the accuracy of both.
"""

from __future__ import annotations

import json
import sys

import numpy as np


def main(source: str) -> None:
    from stepgraph import decoders, pipeline
    from stepgraph.datasets import open_source
    from stepgraph.encoders import EncoderOptions, text

    dataset = open_source(source)
    sentences = list({s.text for video in dataset.videos for s in video.transcript})
    vectors, best, accuracy = {}, {}, {}
    for precision in ("float32", "bfloat16"):
        encoder = text.TextEncoder(EncoderOptions(precision=precision))
        keysteps = encoder.encode_keysteps(dataset.vocabulary)
        vectors[precision] = encoder.encode_texts(sentences)
        best[precision] = (vectors[precision] @ keysteps.T).argmax(axis=1)
        chosen = {"path-search": decoders.PathSearch()}
        [measured] = pipeline.run_evaluation(dataset, chosen, encoder=encoder).measured
        accuracy[precision] = round(measured.report.accuracy, 4)
    cosines = (vectors["float32"] * vectors["bfloat16"]).sum(axis=1)
    result = {
        "source": source,
        "sentences": len(sentences),
        "same_best_keystep": round(float(np.mean(best["float32"] == best["bfloat16"])), 4),
        "least_cosine": round(float(cosines.min()), 5),
        "accuracy": accuracy,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])
