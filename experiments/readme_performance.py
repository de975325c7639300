"""README's performance section, from the results of ``mh4 bench all -o experiments/results/performance``.

python experiments/readme_performance.py            # writes the section between the two markers of README.md
python experiments/readme_performance.py --check    # exit status 1 if it is another one
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from mh4.benchmark_report import RESULTS, performance_markdown, replace_section
from mh4.files import atomic_output

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=ROOT / "experiments" / "results" / "performance" / RESULTS)
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--check", action="store_true", help="only compare")
    arguments = parser.parse_args()
    text = arguments.readme.read_text(encoding="utf-8")
    section = performance_markdown(json.loads(arguments.results.read_text(encoding="utf-8")))
    wanted = replace_section(text, section)
    if arguments.check:
        if text != wanted:
            raise SystemExit(f"{arguments.readme} differs from {arguments.results}; run this program without --check")
        return
    with atomic_output(arguments.readme) as stream:
        stream.write(wanted.encode())


if __name__ == "__main__":
    main()
