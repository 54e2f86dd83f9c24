"""A guard on the judge's side: a candidate that learns is a few kilobytes; one that carries answers along is more."""

import sys
from pathlib import Path

MOST_BYTES = 20_000

size = sum(path.stat().st_size for path in Path("../candidate").rglob("*") if path.is_file())
if size > MOST_BYTES:
    sys.exit(f"the candidate's files have {size} bytes, more than {MOST_BYTES}")
