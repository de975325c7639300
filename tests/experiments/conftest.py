"""Add the folder of the experiments to the import path: they are scripts that import one another."""

import sys

from paths import ROOT

EXPERIMENTS = ROOT / "experiments"
sys.path.insert(0, str(EXPERIMENTS))
