"""The only place that constructs: from settings and a task folder to working parts.

Nothing is imported here: a command that only reads a campaign must not load what runs one.
"""
