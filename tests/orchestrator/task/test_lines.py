"""On which line a key stands."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.task.errors import Key
from orchestrator.task.lines import key_lines, line_of

TEXT = '''# a comment with = and [brackets]
plain = 1
"quoted key" = "a # b"  # [x]
'literal' = """
[not.a.table]
no = "key" \\""" still
""""
a.b . "c" = [
  "[", # ]
  { d = "}" },
]

[ table ] # trailing
key = \'\'\'
[[nor]]
\'\'\'
inline = {one = 1, two = {three = 3}}
[table.deeper.still]
x = 1979-05-27T07:32:00Z
[[list]]
name = "first"
[list.sub]
y = 1
[[list]]
name = "second"
[list.sub]
y = 2
[[list.inner]]
z = 1
[[list.inner]]
z = 2
'''

LINES: dict[Key, int] = {
    (): 1,
    ("plain",): 2,
    ("quoted key",): 3,
    ("literal",): 4,
    ("a",): 8,
    ("a", "b"): 8,
    ("a", "b", "c"): 8,
    ("table",): 13,
    ("table", "key"): 14,
    ("table", "inline"): 17,
    ("table", "deeper"): 18,
    ("table", "deeper", "still"): 18,
    ("table", "deeper", "still", "x"): 19,
    ("list",): 20,
    ("list", 0): 20,
    ("list", 0, "name"): 21,
    ("list", 0, "sub"): 22,
    ("list", 0, "sub", "y"): 23,
    ("list", 1): 24,
    ("list", 1, "name"): 25,
    ("list", 1, "sub"): 26,
    ("list", 1, "sub", "y"): 27,
    ("list", 1, "inner"): 28,
    ("list", 1, "inner", 0): 28,
    ("list", 1, "inner", 0, "z"): 29,
    ("list", 1, "inner", 1): 30,
    ("list", 1, "inner", 1, "z"): 31,
}


def test_every_form_of_key() -> None:
    """Tables, arrays of tables, dotted and quoted keys are found; what stands in strings and comments is not."""
    assert tomllib.loads(TEXT)["a"]["b"]["c"] == ["[", {"d": "}"}]
    assert key_lines(TEXT) == LINES


def test_inside_a_value_the_line_is_where_it_begins() -> None:
    """Keys of inline tables and entries of lists are told by the line of what they stand in."""
    assert line_of(("table", "inline", "two", "three"), LINES) == 17
    assert line_of(("a", "b", "c", 1, "d"), LINES) == 8
    assert line_of(("nowhere",), LINES) == 1


def test_line_ends() -> None:
    """A file saved on Windows has the same lines, and the last key needs no newline behind it."""
    assert key_lines(TEXT.replace("\n", "\r\n")) == LINES
    assert key_lines('a = 1\nb = "x"') == {(): 1, ("a",): 1, ("b",): 2}


WORDS = st.text("ab-_1", min_size=1, max_size=4)
VALUES = st.sampled_from(
    [
        "1",
        '"x"',
        "'#['",
        '"""\n[a]\nb = 1\n"""',
        "'''\n\"\"\"\n'''",
        "[\n1, # ]\n[2]]",
        '{a = {b = "}"}}',
        '"\\"#"',
        '""',
    ]
)


@given(st.dictionaries(WORDS, st.dictionaries(WORDS, VALUES, max_size=4), max_size=4), st.booleans())
def test_lines_of_any_file(tables: dict[str, dict[str, str]], spaced: bool) -> None:
    """Whatever the values are, every key is found on the line where it was written."""
    text = ""
    expected: dict[Key, int] = {(): 1}
    for table, keys in tables.items():
        text += "\n# [x]\n" if spaced else ""
        expected[(table,)] = text.count("\n") + 1
        text += f"[{table}]\n"
        for key, value in keys.items():
            expected[(table, key)] = text.count("\n") + 1
            text += f"{key} = {value}\n"
    assert set(tomllib.loads(text)) == set(tables)
    assert key_lines(text) == expected
