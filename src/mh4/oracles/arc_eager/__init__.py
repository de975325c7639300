"""Arc-eager parsing: the optimal step for any gold tree (Nederhof 2021)."""

from .oracle import ALGORITHMS, optimal_computation, optimal_step, step_scores_batch

__all__ = ["ALGORITHMS", "optimal_computation", "optimal_step", "step_scores_batch"]
