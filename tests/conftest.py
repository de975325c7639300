"""Settings for all tests."""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # read when torch is imported; test processes run side by side

from hypothesis import settings

# The first call of a kernel compiles it.
settings.register_profile("mh4", deadline=None, max_examples=60)
settings.load_profile("mh4")
