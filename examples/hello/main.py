"""A candidate for `blastdoor exec`: reads a file, reports as it goes, leaves an answer."""

import os
from pathlib import Path

numbers = [int(word) for word in Path("numbers.txt").read_text().split()]
total = 0
for step, number in enumerate(numbers):
    total += number
    print(f'::report {{"step": {step}, "value": {total}}}', flush=True)
Path(os.environ["BLASTDOOR_OUT"], "total.txt").write_text(f"{total}\n")
