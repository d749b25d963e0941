"""The search for victims, and the play-through that a set has to pass before anything of it is evicted."""
