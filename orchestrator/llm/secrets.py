"""Looks for secrets in what may reach a model or an agent's chamber. It says where and of what kind, never what.

Two nets: forms that a provider gives its keys, and long random-looking values given to names like password or token.
The second is coarse on purpose towards words and placeholders: a false alarm stops a campaign for nothing.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import PurePosixPath

from orchestrator.change import Policy, Tree

_FORMS: dict[str, tuple[tuple[bytes, ...], bytes]] = {
    "a private key": ((b"PRIVATE KEY",), rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"),
    "an AWS key": ((b"AKIA", b"ASIA"), rb"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a Google key": ((b"AIza", b"ya29."), rb"\bAIza[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])|\bya29\.[0-9A-Za-z_-]{20,}"),
    "a GitHub token": ((b"gh", b"github_pat_"), rb"\b(?:gh[pousr]_[0-9A-Za-z]{36,}|github_pat_[0-9A-Za-z_]{22,})"),
    "a GitLab token": ((b"glpat-",), rb"\bglpat-[0-9A-Za-z_-]{20,}"),
    "a Slack token": (
        (b"xox", b"hooks.slack.com"),
        rb"\bxox[abeoprs]-[0-9A-Za-z-]{10,}|hooks\.slack\.com/services/T\w+/B\w+/\w+",
    ),
    "an Anthropic key": ((b"sk-ant-",), rb"\bsk-ant-[0-9A-Za-z_-]{20,}"),
    "an OpenAI key": ((b"sk-",), rb"\bsk-(?!ant-)(?:proj-|svcacct-|admin-)?(?=[0-9A-Za-z_-]{0,60}\d)[0-9A-Za-z_]{20,}"),
    "a Hugging Face token": ((b"hf_",), rb"\bhf_[0-9A-Za-z]{34,}"),
    "a Stripe key": ((b"k_live_",), rb"\b[sr]k_live_[0-9A-Za-z]{16,}"),
    "a package registry's token": ((b"npm_", b"pypi-"), rb"\bnpm_[0-9A-Za-z]{36,}|\bpypi-AgEI[0-9A-Za-z_-]{30,}"),
    "a signed token": ((b"eyJ",), rb"\beyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{10,}"),
}
_PATTERNS = {kind: (hints, re.compile(pattern)) for kind, (hints, pattern) in _FORMS.items()}

_NAMES = tuple(
    name.encode()
    for name in ("password", "passwd", "secret", "token", "api_key", "api-key", "apikey", "access_key", "credential")
)
_GIVEN = rb"[\w.-]{0,60}[\"']?[ \t]*(?:=>|:=|[:=])[ \t]*"
_IN_QUOTES = re.compile(_GIVEN + rb"[bru]?[\"']([^\"'\s]{12,400})[\"']")
_BARE = re.compile(_GIVEN + rb"([^\"'\s#;,]{12,400})[ \t]*(?:[#;].*)?$", re.MULTILINE)
_IN_URL = re.compile(rb"://[^\s:/@\"']{1,64}:([^\s:/@\"']{8,200})@")
# Where a value stands without quotes; in a program it would be a name.
_SETTINGS = {".env", ".ini", ".cfg", ".conf", ".toml", ".yml", ".yaml", ".properties", ".netrc", ".sh"}

_PLACEHOLDERS = re.compile(
    r"(?i)example|changeme|change_me|placeholder|dummy|sample|your|xxxx|\.\.\.|[<>{}$]|%\(|not.?a|fake|test"
)
_WORDS = re.compile(r"[-_./:@ ]")
_LEAST_BITS = 3.2
_LEAST_KINDS = 2
_MOST = 20  # of a kind in a file; nobody reads more
_MOST_NAMES = 20_000  # a file that has the word more often is data


@dataclass(frozen=True)
class Found:
    """`kind` completes the sentence "it looks like …"."""

    path: str
    line: int
    kind: str


def secrets_in_tree(tree: Tree, policy: Policy) -> list[Found]:
    """In all that is not hidden: the rest may be shown to a model, or lies in an agent's chamber."""
    return [
        Found(path, line, kind)
        for path, file in tree.items()
        if not policy.hides(path)
        for line, kind in secrets_in(file.data, path)
    ]


def secrets_in(data: bytes, path: str = "") -> list[tuple[int, str]]:
    """Line and kind of each, at most one a line."""
    found: dict[int, str] = {}
    for start, kind in (*_of_a_form(data), *_assigned(data, path), *_in_addresses(data)):
        found.setdefault(data.count(b"\n", 0, start) + 1, kind)
    return sorted(found.items())


def kind_of_secret(data: bytes, path: str = "") -> str | None:
    """That of the first one. It looks at all of it: data with the words in every line can hold a secret, too."""
    found = chain(_of_a_form(data), _assigned(data, path, most=None), _in_addresses(data, most=None))
    return next((kind for _, kind in found), None)


def _of_a_form(data: bytes) -> Iterator[tuple[int, str]]:
    for kind, (hints, pattern) in _PATTERNS.items():
        if any(hint in data for hint in hints):
            yield from ((match.start(), kind) for match in islice(pattern.finditer(data), _MOST))


def _assigned(data: bytes, path: str, most: int | None = _MOST_NAMES) -> Iterator[tuple[int, str]]:
    patterns = (_IN_QUOTES, _BARE) if _is_settings(path) else (_IN_QUOTES,)
    lowered = data.lower()
    for name in _NAMES:
        for start in islice(_places(lowered, name), most):
            matches = (pattern.match(data, start + len(name)) for pattern in patterns)
            if any(match and _looks_random(match[1].decode("utf-8", "replace")) for match in matches):
                yield start, "a password or a token"


def _in_addresses(data: bytes, most: int | None = _MOST_NAMES) -> Iterator[tuple[int, str]]:
    for start in islice(_places(data, b"://"), most):
        match = _IN_URL.match(data, start)
        if match and _looks_random(match[1].decode("utf-8", "replace")):
            yield start, "a password in an address"


def _places(data: bytes, wanted: bytes) -> Iterator[int]:
    start = data.find(wanted)
    while start >= 0:
        yield start
        start = data.find(wanted, start + len(wanted))


def _looks_random(value: str) -> bool:
    """Many different characters of several kinds, and none of the words that stand where a secret will be."""
    if _PLACEHOLDERS.search(value) or all(part.isalpha() or part.isdigit() for part in _WORDS.split(value) if part):
        return False
    kinds = sum(any(map(is_kind, value)) for is_kind in (str.islower, str.isupper, str.isdigit))
    return kinds >= _LEAST_KINDS and any(map(str.isdigit, value)) and _bits(value) >= _LEAST_BITS


def _bits(value: str) -> float:
    """Of each character, on average."""
    counts = Counter(value)
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())


def _is_settings(path: str) -> bool:
    name = PurePosixPath(path)
    return name.suffix.lower() in _SETTINGS or name.name.lower() in _SETTINGS or name.name.lower().startswith(".env")
