"""Candidates as commits, and workspaces out of a repository: as bytes, without a git process.

`repository` is the only file that knows libgit2, and reads with it. What is written is written by hand, as `packs` of
objects and as `branches`, so that candidates which wait for the disk wait together.
"""

from orchestrator.git.repository import Candidate, Candidates, GitError, NoSpace, read_tree

__all__ = ["Candidate", "Candidates", "GitError", "NoSpace", "read_tree"]
