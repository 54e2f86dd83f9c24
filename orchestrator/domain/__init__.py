"""What a campaign is made of, as plain values: no clock, no files, no containers."""
