"""Arc-standard (shift-reduce) parsing: the optimal step for any gold tree (Nederhof 2019)."""

from .oracle import ALGORITHMS, flat_configurations, optimal_computation, optimal_step, step_scores_batch

__all__ = ["ALGORITHMS", "flat_configurations", "optimal_computation", "optimal_step", "step_scores_batch"]
