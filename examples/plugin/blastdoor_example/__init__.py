"""What Blastdoor can be given from outside, one of each kind."""
