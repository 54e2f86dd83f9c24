"""A whole coding agent as a proposer: in a chamber without network or key, its every call carried by frames."""
