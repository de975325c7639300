"""Sentences to trees, and the model folder."""
