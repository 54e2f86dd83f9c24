"""Text of others where a program reads it: one function for each such place, in which every text is only text.

Markdown has its own file (`views/render/markdown.py`), prompts have theirs (`proposers/llm/`). What a person reads on
a screen goes through `text.py` first.
"""

import re

from orchestrator.text import printable

# GitHub takes a line that begins with `::`, Azure `##vso[…]` and, like older runners of GitHub, `##[…]` anywhere in a
# line, TeamCity `##teamcity[…]`, GitLab `section_start:…`, also anywhere. Colours and white space before `::` are
# skipped, and a carriage return ends a line.
_LINE_COMMAND = re.compile(r"(^|[\r\n])((?:[^\S\r\n]|\x1b\[[0-9;]*m)*):(?=:)")
_COMMAND = re.compile(r"#(?=#[\[\w])|s(?=ection_(?:start|end):\d)")
# What XML 1.0 does not allow. It takes longer to compile than all else that a command loads first.
_NOT_XML = "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_LINK = re.compile(r"[\\\[\]]")
# A forge that gets the commit would skip its checks, or close what it was not asked to.
_ACTS = re.compile(
    r"\[(?=[^\[\]]*\b(?:skip|no|ci)\b[^\[\]]*\])|\*(?=NO_CI\*)|[#!](?=\d)|(?<=\bGH)-(?=\d)", re.IGNORECASE
)


def ci_log(text: str) -> str:
    """Whole lines for the log of a CI job, which takes some of them for commands. Their first sign becomes an escape,
    one that JSON knows, too: a document in the log keeps its meaning.
    """
    return _COMMAND.sub(lambda found: f"\\u{ord(found[0]):04x}", _LINE_COMMAND.sub(r"\1\2\\u003a", text))


def xml_text(text: str) -> str:
    """For an element or an attribute; the writer of XML escapes the rest."""
    return re.sub(_NOT_XML, "?", printable(text))


def sarif_text(text: str) -> str:
    """For a message, in which brackets would make a link."""
    return _LINK.sub(r"\\\g<0>", printable(text))


def commit_message(text: str, width: int) -> str:
    """A subject, and a body that is indented: no line of it is a trailer, a divider or a comment of git's."""
    lines = [_ACTS.sub(_escaped, printable(line[:width])) for line in text.split("\n")]
    return "\n".join([lines[0], *(f"    {line}" if line.strip() else "" for line in lines[1:])]).rstrip()


def _escaped(found: re.Match[str]) -> str:
    return f"\\x{ord(found[0]):02x}"
