"""Experiments are scripts that import one another from their folder."""

import sys

from paths import ROOT

EXPERIMENTS = ROOT / "experiments"
sys.path.insert(0, str(EXPERIMENTS))
