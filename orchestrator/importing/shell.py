"""The simple commands of a shell script, read strictly: what is not understood raises, and nothing is guessed.

Substitutions, redirections and quotes are taken apart as bash does. Loops, functions, subshells, here-documents, arrays
and arithmetic are not read: arithmetic and `${a[...]}` run commands that stand in the value of a variable.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_OPERATORS = ("&&", "||", ";;", "&>", ">&", ">>", "<<", "<&", ";", "&", "|", "<", ">", "(", ")", "\n")
_REDIRECTS = frozenset(["&>", ">&", ">>", "<", ">"])
_ENDS = frozenset(["&&", "||", ";", "&", "|", "\n"])
_INNER = re.compile(r"\$\(([^()`\\]*)\)")
_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*|[0-9?#]|\{[A-Za-z_][A-Za-z0-9_]*(:-[A-Za-z0-9_./-]*)?\})")
_PLAIN = re.compile(r"[^\s$`\\'\"&|;<>()]+")
# Numbers of the shell's own.
_NUMBERS = ("$?", "$#")
SUBSTITUTED = "$()"


class NotRead(Exception):
    """A construct that is not understood, in words."""


@dataclass
class Command:
    """`before` is the operator that it follows. `loose` are expansions without quotes, which may become several words.
    `writes` are the files that its output goes to; `within` are the commands of its substitutions.
    """

    before: str = "\n"
    words: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    within: list["Command"] = field(default_factory=list)


def read_shell(text: str) -> Iterator[Command]:
    """Raises NotRead."""
    reader = _Reader(text)
    command, redirect = Command(), ""
    while (token := reader.next(command)) is not None:
        word, operator = token
        if redirect:
            if operator:
                raise NotRead(f"{redirect} {operator!r}")
            if redirect != "<" and not (redirect == ">&" and word in ("1", "2")):
                command.writes.append(word)
            redirect = ""
        elif operator in _REDIRECTS:
            redirect = operator
        elif operator in _ENDS:
            if command.words or command.writes or command.within:
                yield command
            command = Command(operator)
        elif operator:
            raise NotRead(repr(operator))
        else:
            command.words.append(word)
    if redirect:
        raise NotRead(redirect)
    if command.words or command.writes or command.within:
        yield command


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")
        self._at = 0

    def next(self, command: Command) -> tuple[str, str] | None:
        """A word or an operator; the other one is empty. None at the end."""
        self._skip()
        if self._at >= len(self._text):
            return None
        if operator := self._operator():
            self._at += len(operator)
            return "", operator
        parts: list[str] = []
        while self._at < len(self._text) and not self._text[self._at].isspace():
            if self._operator():
                if self._text[self._at] in "<>" and "".join(parts).isdigit():  # the number of a stream
                    return self.next(command)
                break
            parts.append(self._part(command))
        return "".join(parts), ""

    def _skip(self) -> None:
        while self._at < len(self._text):
            if self._text.startswith("\\\n", self._at):
                self._at += 2
            elif self._text[self._at] in " \t":
                self._at += 1
            elif self._text[self._at] == "#":
                end = self._text.find("\n", self._at)
                self._at = end if end >= 0 else len(self._text)
            elif self._text[self._at].isspace() and self._text[self._at] != "\n":
                raise NotRead(f"the character {self._text[self._at]!r}")
            else:
                return

    def _operator(self) -> str:
        return next((it for it in _OPERATORS if self._text.startswith(it, self._at)), "")

    def _part(self, command: Command) -> str:
        character = self._text[self._at]
        if character == "'":
            end = self._text.find("'", self._at + 1)
            if end < 0:
                raise NotRead("a quote that does not end")
            found, self._at = self._text[self._at + 1 : end], end + 1
            return found
        if character == '"':
            return self._quoted(command)
        if character == "$":
            found = self._expanded(command)
            command.loose += [found] if found not in _NUMBERS else []
            return found
        if character == "\\":
            return self._escaped()
        if not (plain := _PLAIN.match(self._text, self._at)):
            raise NotRead(repr(character))
        self._at = plain.end()
        return plain[0]

    def _quoted(self, command: Command) -> str:
        parts: list[str] = []
        self._at += 1
        while self._at < len(self._text) and (character := self._text[self._at]) != '"':
            if character == "$":
                parts.append(self._expanded(command))
            elif character == "\\":
                parts.append(self._escaped())
            elif character == "`":
                raise NotRead("`")
            else:
                parts.append(character)
                self._at += 1
        if self._at >= len(self._text):
            raise NotRead("a quote that does not end")
        self._at += 1
        return "".join(parts)

    def _escaped(self) -> str:
        self._at += 2
        found = self._text[self._at - 1 : self._at]
        return "" if found == "\n" else found

    def _expanded(self, command: Command) -> str:
        if inner := _INNER.match(self._text, self._at):
            self._at = inner.end()
            command.within += read_shell(inner[1])
            return SUBSTITUTED
        if found := _VARIABLE.match(self._text, self._at):
            self._at = found.end()
            return found[0]
        raise NotRead(self._text[self._at : self._at + 20].split("\n")[0])
