"""Rules of this house that no linter knows, each in a file: `python -m rules`."""
