"""Training of models on treebanks."""
