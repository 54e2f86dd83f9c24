"""Judges that call the candidate."""

# ruff: noqa: E501  # lines of programs, as their readers would write them

from tests.leaky.collection import LOWER, Leaky

_HEAD = """import random
from blastdoor_judge import BadOutput, number, publish
from blastdoor_relay import BadReply, relay

def draw(rng):
    return [rng.randrange(1000) for _ in range(20)]

"""
# The work is a wait: how long it takes does not depend on how busy the machine is.
_SORTS = "import time\ndef solve(numbers):\n    time.sleep(0.01)\n    return sorted(numbers)\n"
_PREPARES = _SORTS + "def prepare(numbers):\n    return len(numbers)\n"
_GRADES = "def solve(numbers):\n    return sorted(numbers)\ndef is_solution(numbers, answer):\n    return sorted(numbers) == answer\n"
_NEAR = "def solve(numbers):\n    return sum(numbers) - 20.5\n"
_TOP = "def solve(numbers):\n    return sorted(numbers)[-3:]\n"
_RIGHT = "\n        if answer != sorted(numbers): raise BadOutput('not sorted')"

_TIMED = (
    _HEAD
    + """with relay() as candidate:
    seconds = 0.0
    for number_of_call in range(4):
        numbers = draw(candidate.rng())
        reply = candidate.call("solve", numbers)
        answer, seconds = reply.value, seconds + reply.elapsed
        LEAK
    publish(-seconds, metrics={"seconds": seconds})
"""
)
_REFERENCE = """import time

def reference():
    started = time.perf_counter()
    for _ in range(3):
        sorted(range(20_000), key=str)
    return time.perf_counter() - started

"""
_SCORED = (
    _HEAD
    + """with relay() as candidate:
    scores = []
    for _ in range(5):
        numbers = draw(candidate.rng())
        LEAK
    publish(sum(scores) / len(scores) if scores else 0.0)
"""
)

CALLS = [
    Leaky("never-checked", "answers are timed and not looked at", "answers nothing", _TIMED,
          "pass", _RIGHT.strip(), _SORTS, LOWER, calls=True),
    Leaky("checked-once", "the first answer is checked and all are timed", "right once, then nothing", _TIMED,
          "if number_of_call == 0 and answer != sorted(numbers): raise BadOutput('not sorted')", _RIGHT.strip(), _SORTS,
          LOWER, calls=True),
    Leaky("length-only", "of an answer, only the length is checked", "answers the question back", _TIMED,
          "if not isinstance(answer, list) or len(answer) != 20: raise BadOutput('twenty')", _RIGHT.strip(), _SORTS,
          LOWER, calls=True),
    Leaky("asked-twice", "the best of three with the same question is timed", "remembers",
          _HEAD + "with relay() as candidate:\n    numbers = draw(candidate.rng())\n    times = []\n    for _ in range(3):\n"
          "        LEAK\n        reply = candidate.call('solve', numbers)\n"
          "        if reply.value != sorted(numbers): raise BadOutput('not sorted')\n        times.append(reply.elapsed)\n"
          "    publish(-min(times), metrics={'seconds': min(times)})\n",
          "pass", "numbers = draw(candidate.rng())", _SORTS, LOWER, calls=True),
    Leaky("fixed-seed", "the questions are the same in every run", "learnt by heart",
          _SCORED.replace("    scores = []", "    rng = LEAK\n    scores = []").replace("draw(candidate.rng())", "draw(rng)")
          .replace("        LEAK\n", "        answer = number(candidate.call('solve', numbers).value)\n"
                   "        scores.append(-abs(answer - sum(numbers)))\n"),
          "random.Random(7)", "candidate.rng()", _NEAR, calls=True),
    Leaky("untimed-before", "the question is known to a call that is not timed", "looks ahead",
          _HEAD + "with relay() as candidate:\n    seconds = 0.0\n    for _ in range(4):\n        numbers = draw(candidate.rng())\n"
          "        before = candidate.call('prepare', numbers)\n        reply = candidate.call('solve', numbers)\n"
          "        if before.value != 20 or reply.value != sorted(numbers): raise BadOutput('wrong')\n"
          "        seconds += LEAK\n    publish(-seconds, metrics={'seconds': seconds})\n",
          "reply.elapsed", "before.elapsed + reply.elapsed", _PREPARES, LOWER, calls=True),
    Leaky("untimed-loading", "what is timed has no question, so it can be worked out while loading", "works while loading",
          _HEAD + "with relay() as candidate:\n    seconds = 0.0\n    for _ in range(3):\n        numbers = draw(candidate.rng())\n"
          "        table, reply = candidate.call('table'), candidate.call('solve', numbers)\n"
          "        if table.value != list(range(20)) or reply.value != sorted(numbers): raise BadOutput('wrong')\n"
          "        seconds += LEAK\n    publish(-seconds, metrics={'seconds': seconds})\n",
          "table.elapsed", "reply.elapsed",
          _SORTS + "def table():\n    return solve(list(range(20)))\n", LOWER, calls=True),
    Leaky("takes-off-nothing", "what an empty call takes is taken off, as the candidate answers it",
          "sleeps when nothing is asked", _TIMED.replace("seconds + reply.elapsed", "seconds + LEAK").replace("        LEAK\n", _RIGHT[1:] + "\n"),
          "reply.elapsed - candidate.null()", "reply.net", _SORTS, LOWER, calls=True),
    Leaky("takes-off-its-own", "what work of the judge takes beside the candidate is taken off",
          "burns between calls", _REFERENCE + _TIMED.replace("        LEAK\n", _RIGHT[1:] + "\n        own = min(reference() for _ in range(4))\n")
          .replace("answer, seconds = reply.value, seconds + reply.elapsed", "answer = reply.value")
          .replace("    publish(", "        seconds += LEAK\n    publish("),
          "reply.elapsed - own", "reply.net", _SORTS, LOWER, calls=True),
    Leaky("graded-by-itself", "the candidate says whether its own answer is right", "says yes", _SCORED,
          "answer = candidate.call('solve', numbers).value\n"
          "        scores.append(float(candidate.call('is_solution', numbers, answer).value is True))",
          "answer = candidate.call('solve', numbers).value\n"
          "        scores.append(float(answer == sorted(numbers)))", _GRADES, calls=True),
    Leaky("errors-are-skipped", "questions that end in an error are not counted", "right once, then an error", _SCORED,
          "try:\n            answer = candidate.call('solve', numbers).value\n        except BadReply:\n            continue\n"
          "        scores.append(float(answer == sorted(numbers)))",
          "try:\n            answer = candidate.call('solve', numbers).value\n        except BadReply:\n            answer = None\n"
          "        scores.append(float(answer == sorted(numbers)))", _SORTS.replace("0.01", "0"), calls=True),
    Leaky("order-only", "only the order of what came is checked", "answers an empty list", _SCORED,
          "answer = candidate.call('solve', numbers).value\n        if not isinstance(answer, list): raise BadOutput('a list')\n"
          "        scores.append(float(all(a <= b for a, b in zip(answer, answer[1:]))))",
          "answer = candidate.call('solve', numbers).value\n        if not isinstance(answer, list): raise BadOutput('a list')\n"
          "        scores.append(float(answer == sorted(numbers)))", _SORTS.replace("0.01", "0"), calls=True),
    Leaky("members-only", "only the members are checked, not their order", "answers the question back", _SCORED,
          "answer = candidate.call('solve', numbers).value\n        if not isinstance(answer, list): raise BadOutput('a list')\n"
          "        scores.append(float(sorted(answer) == sorted(numbers)))",
          "answer = candidate.call('solve', numbers).value\n        if not isinstance(answer, list): raise BadOutput('a list')\n"
          "        scores.append(float(answer == sorted(numbers)))", _SORTS.replace("0.01", "0"), calls=True),
    Leaky("nan-is-near", "NaN is never further off than the tolerance", "answers NaN", _SCORED,
          "answer = candidate.call('solve', numbers).value\n        if not isinstance(answer, float): raise BadOutput('a float')\n"
          "        scores.append(0.0 if abs(answer - sum(numbers)) > 30 else 1.0)",
          "answer = number(candidate.call('solve', numbers).value)\n"
          "        scores.append(0.0 if abs(answer - sum(numbers)) > 30 else 1.0)", _NEAR, calls=True),
    Leaky("any-truth", "whatever counts as true is a solution", "answers one", _SCORED,
          "answer = candidate.call('solve', numbers).value\n        scores.append(1.0 if answer else 0.0)",
          "answer = candidate.call('solve', numbers).value\n        scores.append(1.0 if answer == sorted(numbers)[-3:] else 0.0)",
          _TOP, calls=True),
    Leaky("zip-stops", "the comparison stops at the shorter list", "only the first items", _SCORED,
          "answer = candidate.call('solve', numbers).value\n        if not isinstance(answer, list) or not answer: raise BadOutput('a list')\n"
          "        scores.append(float(all(a == b for a, b in zip(answer, sorted(numbers)))))",
          "answer = candidate.call('solve', numbers).value\n        if not isinstance(answer, list) or len(answer) != 20: raise BadOutput('a list')\n"
          "        scores.append(float(all(a == b for a, b in zip(answer, sorted(numbers)))))",
          _SORTS.replace("0.01", "0"), calls=True),
    Leaky("own-figure", "how far off an answer is, the candidate says itself", "one figure alone", _SCORED.replace("relay()", "relay(exact=True)"),
          "answer, off = candidate.call('solve', numbers).value\n        if answer != sorted(numbers): raise BadOutput('not sorted')\n"
          "        scores.append(1.0 / (1.0 + abs(number(off))))",
          "answer, off = candidate.call('solve', numbers).value\n        if answer != sorted(numbers): raise BadOutput('not sorted')\n"
          "        scores.append(0.5)",
          "def solve(numbers):\n    return sorted(numbers), 20.5\n", calls=True),
    Leaky("late-is-skipped", "a call that is too late is not counted", "slow", _HEAD + "with relay() as candidate:\n    off = []\n"
          "    for _ in range(4):\n        numbers = draw(candidate.rng())\n        reply = candidate.call('solve', numbers)\n"
          "        if reply.elapsed < LEAK:\n            off.append(abs(number(reply.value) - sum(numbers)))\n"
          "    publish(-max(off, default=0.0))\n",
          "0.015", "1e9", _NEAR, calls=True),
]  # fmt: skip
