"""Treebanks to models."""
