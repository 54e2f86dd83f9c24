"""The homes of the backends that are built in: all that is true of one of them alone."""
