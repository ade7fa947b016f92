"""Write docs/tables.md from the measured tables: ``python -m benchmarks.docs``.

No number is typed by hand: each table is what ``stepgraph reproduce`` wrote.
"""

from __future__ import annotations

from pathlib import Path

from stepgraph.experiments import TABLES

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "tables"
HEAD = """# The paper's tables, measured here

Every row of the paper that text can give, on the narrated videos of CrossTask that were at hand:
349 videos of 2 of its 18 tasks. What is *measured here* and what the *paper* prints stand side by
side and are never mixed; what a source cannot give is n/a, with the reason.
`stepgraph reproduce TABLE SOURCE` does the same on any source with truth, resumes when interrupted
(`-o DIR`), and prints text, Markdown or JSON; `--video-scores DIR` fills the rows of video and of
video with text.
"""


def main() -> None:
    pieces = [HEAD]
    for name in TABLES:
        noise = " --noise-from articles:PATH" if name == "noise" else ""
        command = f"stepgraph reproduce {name} crosstask:PATH{noise} -o benchmarks/results/tables"
        table = (RESULTS / f"{name}.md").read_text().strip()
        pieces.append(f"{table}\n\n```bash\n{command}\n```\n")
    (ROOT / "docs" / "tables.md").write_text("\n".join(pieces))


if __name__ == "__main__":
    main()
