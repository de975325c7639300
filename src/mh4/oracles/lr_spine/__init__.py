"""LR-spine parsing: correct transitions (Sartorio et al. 2013), and the optimal step for any gold tree."""

from .oracle import correct_transitions, optimal_computation, optimal_step

__all__ = ["correct_transitions", "optimal_computation", "optimal_step"]
