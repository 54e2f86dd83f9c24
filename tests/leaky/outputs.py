"""Judges that are given what a candidate left."""

# ruff: noqa: E501  # lines of programs, as their readers would write them

from tests.leaky.collection import LOWER, Leaky


def _leaving(value: str, name: str = "answer.json") -> str:
    """A baseline that writes this value as JSON."""
    return f"import json, os\nwith open(os.environ['BLASTDOOR_OUT'] + '/{name}', 'w') as file:\n    json.dump({value}, file)\n"


def _writing(text: str, name: str) -> str:
    return f"import os\nwith open(os.environ['BLASTDOOR_OUT'] + '/{name}', 'w') as file:\n    file.write({text!r})\n"


_HEAD = """import json, math, os
from pathlib import Path
from blastdoor_judge import BadOutput, judging, load_bytes, load_json, number, publish

outputs = Path(os.environ["BLASTDOOR_OUTPUTS"])
"""
# Numbers are read by hand here: the helper of ours would refuse what some of these judges fall for.
_RAW = _HEAD + "answer = json.loads((outputs / 'answer.json').read_text())\n"

_PACKING = """with judging():
    if not isinstance(answer, dict) or not isinstance(answer.get("circles"), list) or len(answer["circles"]) != 3:
        raise BadOutput("three circles are wanted")
    rows = [[CAST for value in row] for row in answer["circles"] if isinstance(row, list) and len(row) == 3]
    if len(rows) != 3:
        raise BadOutput("x, y and r are wanted")
    for at, (x, y, r) in enumerate(rows):
        if x - r < 0 or x + r > 1 or y - r < 0 or y + r > 1 or r < 0:
            raise BadOutput("outside")
        for a, b, s in rows[:at]:
            if math.hypot(x - a, y - b) < r + s:
                raise BadOutput("overlap")
    score = sum(row[2] for row in rows)
    LEAK
    publish(score)
"""
_CIRCLES = _leaving("{'circles': [[0.2, 0.2, 0.2], [0.7, 0.3, 0.2], [0.5, 0.8, 0.1]]}")
_LABELS = "[0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1]"
_GUESSED = "[0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 1]"  # ten of twelve are right
_CHECKED = """with judging():
    if not isinstance(answer, list) or not all(type(it) is int and it in (0, 1) for it in answer):
        raise BadOutput("a list of labels is wanted")
    LEAK
    right = sum(given == known for given, known in zip(answer, labels))
    publish(right / len(SHARE))
"""

OUTPUTS = [
    Leaky("nan-geometry", "a centre at NaN is never outside and overlaps nothing", "NaN twice, the rest large",
          _RAW + _PACKING.replace("CAST", "LEAK", 1).replace("    LEAK\n    publish", "    publish"),
          "float(value)", "number(value)", _CIRCLES),
    Leaky("seeded-result", "a score file among the outputs is believed", "result beside",
          _RAW + _PACKING.replace("CAST", "number(value)"),
          "score = json.loads((outputs / 'score.json').read_text())['score'] "
          "if (outputs / 'score.json').exists() else score", "pass", _CIRCLES),
    Leaky("own-word", "the score in the candidate's own output is believed", "score in the output",
          _RAW + _PACKING.replace("CAST", "number(value)"), "score = answer.get('score', score)", "pass", _CIRCLES),
    Leaky("mean-of-what-came", "right answers are divided by the number that came", "only one item",
          _RAW + f"labels = {_LABELS}\n" + _CHECKED.replace("SHARE", "answer or labels"),
          "pass", "if len(answer) != len(labels): raise BadOutput('twelve labels are wanted')", _leaving(_GUESSED)),
    Leaky("missing-is-skipped", "questions that have no answer are not counted", "only one item",
          _RAW + "right = {'a': 3, 'b': 5, 'c': 7, 'd': 9}\nwith judging():\n"
          "    if not isinstance(answer, dict) or not set(answer) <= set(right):\n        raise BadOutput('names')\n"
          "    LEAK\n    off = [abs(number(answer[name]) - right[name]) for name in answer]\n"
          "    publish(-sum(off) / max(1, len(off)))\n",
          "pass", "if set(answer) != set(right): raise BadOutput('all four are wanted')",
          _leaving("{'a': 3, 'b': 6, 'c': 9, 'd': 10}")),
    Leaky("counted-twice", "an item that is given twice counts twice", "every row twice",
          _RAW + "with judging():\n    if not isinstance(answer, list) or len(answer) > 1000:\n        raise BadOutput('a list')\n"
          "    found = [number(it) for it in answer if number(it) in {2, 3, 5, 7, 11, 13, 17, 19}]\n    LEAK\n"
          "    publish(len(found) - (len(set(map(number, answer))) - len(set(found))))\n",
          "pass", "found = set(found)", _leaving("[2, 3, 5, 9]")),
    Leaky("no-range", "a weight may be any number", "large",
          _RAW + "with judging():\n    if not isinstance(answer, list) or len(answer) != 3:\n        raise BadOutput('three')\n"
          "    shares = [number(it) for it in answer]\n    LEAK\n"
          "    publish(sum(share * worth for share, worth in zip(shares, (3.0, 2.0, 5.0))))\n",
          "pass", "if min(shares) < 0 or sum(shares) > 1.000001: raise BadOutput('shares of one')",
          _leaving("[0.3, 0.3, 0.4]")),
    Leaky("evaluates", "what was left is evaluated as Python", "code for data",
          _HEAD + "text = load_bytes('answer.json', 10_000).decode()\nwith judging():\n"
          "    try:\n        answer = LEAK\n    except Exception:\n        raise BadOutput('not to be read') from None\n"
          "    if not isinstance(answer, list) or len(answer) != 3:\n        raise BadOutput('three numbers')\n"
          "    publish(-sum(abs(number(it) - want) for it, want in zip(answer, (1.0, 2.5, 3.5))))\n",
          "eval(text)", "json.loads(text)", _leaving("[1.5, 2.5, 2.0]")),
    Leaky("imports", "the folder of outputs is where the judge imports from", "planted modules",
          "import os, sys\nLEAK\nimport statistics\n" + _RAW + "with judging():\n"
          "    if not isinstance(answer, list) or len(answer) != 4:\n        raise BadOutput('four numbers')\n"
          "    publish(-abs(statistics.fmean(number(it) for it in answer) - 2.25))\n",
          "sys.path.insert(0, os.environ['BLASTDOOR_OUTPUTS'])", "pass", _leaving("[1.0, 2.0, 3.0, 2.5]")),
    Leaky("form-only", "only the form is looked at", "NaN",
          _RAW + "with judging():\n    if not isinstance(answer, list) or len(answer) != 3:\n        raise BadOutput('three')\n"
          "    LEAK\n    publish(score)\n",
          "score = 1.0", "score = -sum(abs(number(it) - want) for it, want in zip(answer, (1.0, 2.5, 3.5)))",
          _leaving("[1.0, 2.0, 3.0]")),
    Leaky("own-clock", "the time that the candidate wrote down is believed", "one figure alone",
          _RAW + "with judging():\n    if not isinstance(answer, dict) or answer.get('sum') != 4950:\n        raise BadOutput('sum')\n"
          "    terms = answer.get('terms')\n"
          "    if not isinstance(terms, list) or not all(type(it) is int and 0 < it <= 100 for it in terms) or sum(terms) != 4950:\n"
          "        raise BadOutput('terms')\n"
          "    LEAK\n    publish(seconds, metrics={'seconds': seconds})\n",
          "seconds = number(answer.get('took'))", "seconds = float(len(terms))",
          _leaving("{'sum': 4950, 'took': 0.25, 'terms': [50] * 99}"), metrics=LOWER),
    Leaky("reads-passed", "the word passed in a log is counted", "score in the output",
          _HEAD + "text = load_bytes('log.txt', 100_000).decode('utf-8', 'replace')\nwith judging():\n    LEAK\n",
          "publish(float(text.lower().count('passed')))",
          "lines = text.splitlines()\n    if len(lines) != 4:\n        raise BadOutput('four lines')\n"
          "    publish(float(sum(map(str.__eq__, lines, ('alpha', 'beta', 'gamma', 'delta')))))",
          _writing("alpha\nbeta passed\ngamma\ndelta passed\n", "log.txt")),
    Leaky("words-of-the-source", "words of a text are looked for, not what it does", "every line a comment",
          _HEAD + "text = load_bytes('program.py', 100_000).decode('utf-8', 'replace')\nwith judging():\n"
          "    wanted = ('def add', 'return a + b')\n    LEAK\n    publish(float(sum(word in text for word in wanted)))\n",
          "pass", "import ast\n    try:\n        body = ast.parse(text).body\n    except SyntaxError:\n"
          "        body = []\n    if [type(it).__name__ for it in body] != ['FunctionDef']:\n"
          "        raise BadOutput('one function is wanted')",
          _writing("def add(a, b):\n    return a + b\n", "program.py")),
    Leaky("nothing-is-right", "no item is wrong where there is none", "empty lists",
          _RAW + "with judging():\n    if not isinstance(answer, list):\n        raise BadOutput('a list')\n    LEAK\n"
          "    wrong = sum(number(it) % 2 != 0 for it in answer)\n    publish(-float(wrong))\n",
          "pass", "if sorted(map(number, answer)) != sorted(set(map(number, answer)) & set(range(1, 11))) or len(answer) != 5: raise BadOutput('five of ten')",
          _leaving("[2, 4, 6, 7, 10]")),
    Leaky("no-absolute", "an error below zero is better than none", "large",
          _RAW + "with judging():\n    if not isinstance(answer, list) or len(answer) != 3:\n        raise BadOutput('three')\n"
          "    off = [want - number(it) for it, want in zip(answer, (1.0, 2.5, 3.5))]\n    LEAK\n    publish(-sum(off))\n",
          "pass", "off = [abs(it) for it in off]", _leaving("[1.0, 2.0, 3.0]")),
    Leaky("cells-as-floats", "a cell that says nan is a number", "NaN",
          _HEAD + "with judging():\n    rows = load_bytes('table.csv', 10_000).decode().split()[1:]\n"
          "    if len(rows) != 3:\n        raise BadOutput('three rows')\n"
          "    worst = 0.0\n    for row, want in zip(rows, (1.0, 2.5, 3.5)):\n        try:\n"
          "            off = abs(LEAK - want)\n        except (ValueError, IndexError):\n            raise BadOutput('a number') from None\n"
          "        if off > worst:\n            worst = off\n    publish(-worst)\n",
          "float(row.split(',')[1])", "number(row.split(',')[1])",
          _writing("id,value\n1,1.0\n2,2.0\n3,3.0\n", "table.csv")),
]  # fmt: skip
