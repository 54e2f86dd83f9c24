"""Commands about the chamber itself; the only views that know the sandbox."""
