"""Transition systems: how a tree is built one step at a time."""
