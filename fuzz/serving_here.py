"""Read arrays in this process rather than in the one that is started for them.

That one is bounded far above what is allowed here, and what it does is not followed.
"""

import json
import warnings
from unittest import mock

import numpy as np

from stepgraph.errors import DataError
from stepgraph.files.arrays.reader import READER
from stepgraph.files.arrays.serving import _Server


def here(read):
    """A reader of one input, without another process."""

    def reader(path, out):
        server = _Server()

        def exchange(question, into):
            try:
                with warnings.catch_warnings(action="ignore"):  # there, nobody would see them
                    answer, numbers = server.answer(json.loads(json.dumps(question)))
            except DataError as error:
                return {"refused": str(error)}
            except Exception as error:  # a lack of memory is no more than this, there
                return {"failed": f"got an error ({error})"}
            answer = json.loads(json.dumps(answer))
            if into is not None and answer == {}:
                into.reshape(-1).view(np.uint8)[:] = numbers
            return answer

        with mock.patch.object(READER, "_exchange", exchange):
            return read(path, out)

    return reader
