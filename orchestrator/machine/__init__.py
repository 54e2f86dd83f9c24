"""What a machine needs before the first chamber: programs, an engine and images.

The standard library alone, since `scripts/with-engine` runs this where nothing is installed yet.
"""
