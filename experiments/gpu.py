"""Measure on a GPU all that is to be known of it, in one command of at most 25 minutes, without a network.

    python experiments/gpu.py                  # every stage that has no result yet; each writes its JSON at once
    python experiments/gpu.py --report         # the results as the GPU section of docs/results.md
    python experiments/gpu.py --rehearse       # every stage at a hundredth of the size, on a pretended GPU

Nothing is installed. If mh4 is not installed, its sources are laid out as a package in ``--layout`` and put on the
path. Packages that the machine lacks can be supplied in a folder, ``--vendor``; otherwise they are listed. After an
interruption, or when time is over, the next call does the remaining stages; training resumes from its last evaluation.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import tomllib
from contextlib import ExitStack
from pathlib import Path

from scripting import run_script

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results" / "gpu"
SHARED = ROOT.parent / "shared" / "ud" / "2.0"
TESTED_BY = ("hypothesis", "pytest")  # requirements of the stage "parity" beyond those of mh4
ROOMS = {"mh4": "", "decoders": "decoders", "models": "models"}  # folders of src, and their places in the package


def lay_out(folder: Path) -> None:
    """Copy the sources into ``folder`` as the package that an installation would create."""
    shutil.rmtree(folder, ignore_errors=True)
    for source, place in ROOMS.items():
        shutil.copytree(
            ROOT / "src" / source,
            folder / "mh4" / place,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    about = folder / "mh4-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mh4\nVersion: 0.1.0\n", encoding="utf-8")


def find_package(layout: Path, vendor: Path | None) -> None:
    """Make mh4 importable in this process and those it starts."""
    added = [str(folder) for folder in (vendor,) if folder is not None]
    if importlib.util.find_spec("mh4") is None:
        lay_out(layout)
        added.append(str(layout))
    sys.path[:0] = added
    os.environ["PYTHONPATH"] = os.pathsep.join([*added, *filter(None, [os.environ.get("PYTHONPATH")])])


def missing_packages() -> list[str]:
    """The requirements of mh4 and its tests that are missing or too old on this machine."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    of_tests = [one for one in project["optional-dependencies"]["dev"] if one.partition(">=")[0] in TESTED_BY]
    missing = []
    for requirement in [*project["dependencies"], *of_tests]:
        name, _, least = requirement.partition(">=")
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(requirement)
            continue
        if _numbers(found) < _numbers(least):
            missing.append(requirement)
    return missing


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version.partition("+")[0])]


def check_packages() -> None:
    """Exit if packages are missing, and tell how to fetch them on a machine with a network."""
    if missing := missing_packages():
        wanted = " ".join(f"'{requirement}'" for requirement in missing)
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise SystemExit(
            f"missing here: {', '.join(missing)}. Bring it along in a folder, made where there is a network by\n"
            f"  pip install --target vendor --only-binary :all: --python-version {python} "
            f"--platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 {wanted}\n"
            "and add --vendor vendor"
        )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--treebanks", nargs="*", metavar="NAME=FOLDER", help="of accuracy (default: hu and got)")
    parser.add_argument("--stages", nargs="*", metavar="STAGE", help="these only")
    parser.add_argument(
        "--minutes", type=float, default=25.0, help="begin nothing after so long (default: %(default)s)"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder (default: %(default)s)")
    parser.add_argument(
        "--work", type=Path, default=ROOT / "runs" / "gpu", help="folder of models (default: %(default)s)"
    )
    parser.add_argument("--layout", type=Path, default=ROOT / "build" / "gpu", help="see above (default: %(default)s)")
    parser.add_argument("--vendor", type=Path, help="folder of packages that were brought along")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "results.md", help="that --report writes to")
    parser.add_argument("--report", action="store_true", help="write the report, measure nothing")
    parser.add_argument("--rehearse", action="store_true", help="try everything without a GPU")
    arguments = parser.parse_args()
    if arguments.rehearse:
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # the work is small, and threads would wait for busy cores
    find_package(arguments.layout, arguments.vendor)
    check_packages()
    from gpu_stages import FULL, REHEARSAL, run_stages  # needs mh4

    if arguments.report:
        from gpu_report import write_report

        write_report(arguments.results, arguments.page)
        return
    with ExitStack() as stack:
        if arguments.rehearse:
            sys.path.insert(0, str(ROOT / "tests" / "support"))
            from pretend_gpu import PretendGPU

            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            results = arguments.results if arguments.results != RESULTS else folder / "results"
            size, work, treebanks = REHEARSAL, folder / "work", {}
            stack.enter_context(PretendGPU())
        else:
            size, work, results = FULL, arguments.work, arguments.results
            named = arguments.treebanks or [f"{name}={SHARED / name}" for name in ("hu", "got")]
            treebanks = {name: Path(where) for name, _, where in (text.partition("=") for text in named)}
        failed = run_stages(size, treebanks, results, work, arguments.minutes, arguments.stages)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    raise SystemExit(run_script(main))
