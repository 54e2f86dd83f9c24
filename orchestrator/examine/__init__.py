"""Looks at a task, a node or a change from outside of any campaign that is kept."""
