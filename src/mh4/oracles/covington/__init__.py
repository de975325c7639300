"""Covington parsing: the exact loss of any configuration (Gómez-Rodríguez & Fernández-González 2015)."""

from .oracle import flat_configurations, loss, optimal_computation, optimal_step, step_scores_batch

__all__ = ["flat_configurations", "loss", "optimal_computation", "optimal_step", "step_scores_batch"]
