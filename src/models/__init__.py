"""PyTorch modules: encoder, scorers, labeler, taggers and the structured hinge loss."""
