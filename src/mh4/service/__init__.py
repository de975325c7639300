"""Many files, other programs."""
