"""Run every harness for some time, or look at a find again.

python -m fuzz --seconds 300 --seed 0 [NAME ...]
python -m fuzz fuzz/finds/graph-0123abcd.json
"""

import argparse
import sys
from pathlib import Path

from fuzz import loop
from fuzz.harnesses import HARNESSES


def main():
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="harnesses (all if not given), or finds")
    parser.add_argument("--seconds", type=float, default=300, help="for all together")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    finds = [Path(name) for name in args.names if name.endswith(".json")]
    with loop.Worker() as worker:
        if finds:
            return replay(worker, finds)
        names = args.names or [n for n, one in HARNESSES.items() if loop.is_installed(one)]
        return run(worker, names, args.seconds / len(names), args.seed)


def run(worker, names, seconds, seed):
    inputs = finds = 0
    for name in names:
        tally = loop.fuzz(worker, name, seconds=seconds, seed=seed)
        print(tally, flush=True)
        for find in tally.finds:
            print(f"  {loop.save(find)}\n    {find.outcome.words.strip()[-600:]}", flush=True)
        inputs, finds = inputs + tally.inputs, finds + len(tally.finds)
    print(f"{'total':20} {inputs:9,} inputs, {finds} finds")
    return int(finds > 0)


def replay(worker, finds):
    wrong = 0
    for path in finds:
        harness, files = loop.load(path)
        worker.open(harness)
        outcome = worker.run(files)
        wrong += outcome.kind == "find"
        print(f"{path}: {outcome.kind} {outcome.place}\n{outcome.words}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
