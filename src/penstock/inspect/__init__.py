"""Looking at a log: where to read it, what to pick of it, and what is in it."""
