"""``mh4 bench``: how fast everything is."""
