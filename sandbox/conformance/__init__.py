"""The contract that every backend must pass, run by our tests and by users through `blastdoor doctor`."""
