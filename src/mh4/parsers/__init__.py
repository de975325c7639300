"""Parsers, which turn sentences into trees, and the folders that their models are saved in."""
