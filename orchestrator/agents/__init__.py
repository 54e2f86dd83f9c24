"""A coding agent in a chamber of its own, without a network and without a key."""
