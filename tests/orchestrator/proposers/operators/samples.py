"""Sources to work on: ordinary ones, one for every operator; and such as nobody should have written."""

SOLVER = '''"""Finds something."""

import math
import random

RATE = 0.5  # how fast
LIMIT = 100


def distance(a: float, b: float) -> float:
    """How far apart."""
    return math.hypot(a, b) + abs(a - b) * 0.25


def solve(values: list[float], give: float = 1.5) -> float:
    rng = random.Random(7)
    total = 0.0
    best = 10.0
    verbose = False
    # every value counts
    for i in range(len(values)):
        total += values[i] * RATE
        if total > best and i < LIMIT:
            best = total - 1.0
            total = total / 2
    while total > 1.0:
        total *= 0.9
        best += rng.gauss(0.0, 0.1)
    for value in sorted(values):
        best = max(best, value)
    best = best + distance(total, best) ** 0.5
    return best if verbose else min(best, total * 3)


if __name__ == "__main__":
    print(solve([1.0, 2.0], 2.5))
'''

C = """#include <stdio.h>
#define SIZE 128
/* 1 comment */
int main(void) {
    double rate = 0.5f; // 2 of them
    int steps = 10;
    for (int i = 0; i < steps; i++) {
        rate *= 1.01;
        steps += 0;
    }
    printf("%d of 99\\n", steps);
    return 0;
}
"""
JSON = '{\n  "rows": 5,\n  "rate": -1e-3,\n  "name": "v2 of 3",\n  "steps": [100, 200]\n}\n'
TOML = '# 12 settings\nrate = 0.5\nsteps = 100\n\n[more]\nname = "a 1"\ngrowth = 1.25\n'
SHELL = "#!/bin/sh\n# runs 3 times\nset -e\nN=10\nsleep 0.5\nhead -c 1000 x\ntail -n 5 y\n"

DEEP = {
    "brackets": "x = " + "(" * 5000 + "1" + ")" * 5000 + "\n",
    "lists": "x = " + "[" * 150 + "1" + "]" * 150 + "\n",
    "signs": "x = " + "-" * 50_000 + "1\n",
    "ands": "x = " + " and ".join(["a"] * 20_000) + "\n",
    "sums": "x = " + "+".join(["1"] * 20_000) + "\n",
    "attributes": "x = a" + ".b" * 5_000 + "\n",
    "calls": "x = a" + "()" * 5_000 + "\n",
    "elifs": "if a:\n  x = 1\n" + "elif b:\n  x = 2\n" * 2_000,
    "lambdas": "x = " + "lambda: " * 3_000 + "1\n",
    "patterns": "match a:\n case " + "[" * 40 + "]" * 40 + ":\n  x = 1\n",
    "patterns in brackets": "match a:\n case (\n" + "(" * 40 + "x" + ")" * 40 + "):\n  x = 1\n",
    "maps in patterns": "match a:\n case " + "{1: " * 20 + "x" + "}" * 20 + ":\n  x = 1\n",
    "indents": "".join(" " * n + "if a:\n" for n in range(90)) + " " * 90 + "x = 1\n",
    "strings": "x = " + '"a" ' * 20_000 + "\n",
}
ODD = {
    "a huge number": "x = " + "9" * 100_000 + "\ny = 2\n",
    "beyond all numbers": "x = 1e400\ny = -1e400\n",
    "nearly nothing": "x = 5e-324\ny = 1e308\n",
    "a byte order mark": "\ufeffx = 1\ny = 2.5\n",
    "returns": "x = 1\r\nif x < 2:\r\n    y = 2.5\r\n    x = y\r\n",
    "old returns": "x = 1\ry = 2\r",
    "mixed ends": "x = 1\r\ny = 2\nz = 3",
    "tabs": "def f():\n\tx = 1\n\ty = 2\n\treturn x + y\n",
    "form feeds": "x = 1\n\x0c\ndef f():\n    y = 2\n    return y\n",
    "no end": "def f(x):\n    x = 1\n    y = x",
    "one line": "x = 1; y = 2; z = x < y",
    "suites": "if x: y = 1; z = 2\nelse: y = 2\nwhile x: x -= 1\nfor i in range(3): print(i)\n",
    "letters": "größe = 1.5\nif größe < 2:\n    größe = 'ä' * 3\n",
    "astral": "s = '\U0001f600'; x = 2 < 3\n",
    "continued": "x = 1 + \\\n    2\ny = (1 +  # one\n  2)\n",
    "formats": 'x = f"{1 + 2:{3}} {y!r:>10}"\n',
    "not python": "def f(:\n  x = 1\ny == 2\n",
    "only a comment": "# 1\n",
    "bases": "x = 0xFF + 0b11 + 0o7 + 1_000 + 2j + 1__0\n",
    "warnings": "x = '\\d'\nif x is 1:\n    y = 2\n",
    "async": "async def f(x):\n    async for y in x:\n        await y\n    async with x as z:\n        z += 1\n",
    "star": "def f(*a, b=1, **c):\n    return [*a, *range(3)], {**c}\n",
    "class": "class A:\n    x = 1\n    def f(self):\n        self.x += 1\n        return self.x < 2\n",
    "fences": "x = 1\n```\ny = 2\n```\nz = 3\n",
    "markers": "x = 1\n<<<<<<< SEARCH\ny = 2\n=======\ny = 3\n>>>>>>> REPLACE\nz = 3\n",
    "diffs": "x = 1\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\ny = 2\n",
}
