"""Deterministic parsers with one feed-forward classifier, trained with exact optimal steps (Nederhof 2019, 2021)."""
