"""What in a repository is worth a search: read as text, run in chambers only, and written as a task of ours."""
