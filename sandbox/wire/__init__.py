"""What travels between us and a chamber. Everything here is free of I/O and clocks, and bounded on hostile input."""
