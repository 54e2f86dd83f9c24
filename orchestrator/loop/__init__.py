"""One loop around something dangerous: propose, reserve, run, judge, record."""
