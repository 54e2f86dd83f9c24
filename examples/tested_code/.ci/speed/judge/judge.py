"""Calls the candidate with texts that nobody has seen before, checks every answer, and takes the time: the judge."""

import random
from collections import Counter
from typing import Any

from blastdoor_judge import BadOutput, publish
from blastdoor_relay import relay

WORDS = 4_000
LETTERS = "abcdefghij"


def question(rng: random.Random) -> tuple[str, int]:
    text = " ".join("".join(rng.choices(LETTERS, k=rng.randrange(1, 4))) for _ in range(WORDS))
    return text, rng.randrange(1, 50)


def check(answer: Any, text: str, count: int) -> None:
    right = sorted(Counter(text.split()).items(), key=lambda pair: (-pair[1], pair[0]))[:count]
    if not isinstance(answer, list) or [tuple(pair) for pair in answer] != right:
        raise BadOutput("not the most frequent words")


with relay() as candidate:
    timing = candidate.time("top", question, check)
    publish(timing.seconds, metrics={"seconds": timing.seconds})
