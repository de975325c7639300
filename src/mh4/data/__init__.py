"""Sentences, CoNLL-U, files, pictures of trees, and the sample language."""
