"""Whether an agent is alive: a pure detector over the signals of its streams. The time is always an argument."""
