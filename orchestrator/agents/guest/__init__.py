"""What travels into an agent's chamber. None of it is trusted there: it shares its rights with the agent."""
