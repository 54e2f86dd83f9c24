"""What of a command's output can be compared."""

import pytest

from orchestrator.discovery.bench import alike


@pytest.mark.parametrize(
    ("outputs", "found"),
    [
        ([b"a\n", b"a\n"], ("exact", "a\n")),
        ([b"took 3 ms\n", b"took 4 ms\n"], "numbers"),
        ([b"a", b"b"], ("code", "")),
        # Cut in bytes, it has half as many letters: the whole output would never be the same as this.
        ([("\u00e9" * 300_000).encode()[: (1 << 18) + 1]] * 3, ("code", "")),
    ],
)
def test_alike(outputs: list[bytes], found: tuple[str, str] | str) -> None:
    how = alike(outputs)
    assert (how[0] if isinstance(found, str) else how) == found
