"""Optimal steps: what the best tree still attainable after each transition is worth."""
