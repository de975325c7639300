"""Arc-standard parsing under its other name, shift-reduce."""

from .arc_standard import POLICIES, TRANSITIONS, Configuration
from .arc_standard import ArcStandard as ShiftReduce

__all__ = ["POLICIES", "TRANSITIONS", "Configuration", "ShiftReduce"]
