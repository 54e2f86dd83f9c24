"""Commands that look at the judging itself: is a task fit to be searched, and may one untrusted change come in."""
