"""Greedy parsers scored by an averaged perceptron over sparse features."""
