"""Which parts of a change its score stands on: the parts, and the search for the fewest of them. Pure."""
