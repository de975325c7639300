"""What can be done with gold trees without a model."""
