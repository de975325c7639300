"""Sharing models: packages of one file with a card, an index of packages, downloads by name, and Hugging Face."""
