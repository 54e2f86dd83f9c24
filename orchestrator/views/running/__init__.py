"""Commands that run candidates: a whole campaign, a replay, a guard, a shell."""
