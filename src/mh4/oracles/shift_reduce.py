"""The oracle of arc-standard parsing under its other name, shift-reduce."""

from .arc_standard import ALGORITHMS, flat_configurations, optimal_computation, optimal_step, step_scores_batch

__all__ = ["ALGORITHMS", "flat_configurations", "optimal_computation", "optimal_step", "step_scores_batch"]
