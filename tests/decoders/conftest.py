from hypothesis import settings

# The first call of a kernel compiles it.
settings.register_profile("mh4", deadline=None, max_examples=60)
settings.load_profile("mh4")
