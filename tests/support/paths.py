"""Paths of the checkout and of the shared data beside it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
UD = SHARED / "ud" / "2.0"
GOLDEN_FOLDER = ROOT / "tests" / "golden"
