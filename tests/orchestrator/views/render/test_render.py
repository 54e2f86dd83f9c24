"""Every renderer shows every kind of block, and nothing that others wrote acts in any of them."""

import base64
import hashlib
import json
import math
import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any

import pytest
from markdown_it import MarkdownIt

from orchestrator.sinks import ci_log
from orchestrator.views.campaign.looks import DISCARDED, KEPT
from orchestrator.views.campaign.opening import json_text
from orchestrator.views.render.data import record
from orchestrator.views.render.html import document as html_document
from orchestrator.views.render.layout import cells, cut, fitting, plain, wrapped
from orchestrator.views.render.markdown import document
from orchestrator.views.render.model import (
    BREAK,
    Block,
    Facts,
    Figure,
    Gauge,
    Lines,
    Listing,
    Own,
    Point,
    Prose,
    Quote,
    Section,
    Series,
    Step,
    Table,
    Words,
    facts,
)
from orchestrator.views.render.svg import svg
from orchestrator.views.render.terminal import Terminal
from tests.orchestrator.test_sinks import EVERY, commands, kinds

SERIES = Series(
    "score",
    "higher",
    1,
    [Point("1", 1, KEPT, 1.0, "c"), Point("1.1", 2, KEPT, 2.0, "c")],
    [Step(1, 1.0, "1", fresh=True), Step(2, 2.0, "1.1", fresh=False)],
)
HEAD = Section("head", "The head", "in short")


def everything(word: str) -> list[Section]:
    """One of each block, with the word wherever one can stand: as a quote, and as one that was forgotten."""
    words: Words = [Quote(word), " ", word, BREAK, Own(word, "bold"), Figure(1.5, word), KEPT, Gauge(1, 0, 2)]
    body: list[Block] = [
        Prose(words),
        Prose(word),
        Facts([(word, words), ("whole", Quote(word, None))]),
        Table([word, words], [[words, Quote(word)]]),
        Lines([words, word]),
        Lines([word], cut=True, numbered=True),
        Listing(word),
        Listing(word, "diff"),
        SERIES,
    ]
    listed = Section("listed", line=words, name=word)
    return [HEAD, listed, Section("all", [Quote(word), word], words, body, open=True)]


def on_screen(sections: list[Section], width: int | None = 80) -> list[str]:
    screen = Terminal(width)
    return [plain(line) for shape in (screen.digest, screen.ending, screen.whole) for line in shape(sections)]


@EVERY
def test_t57_a_terminal_shows_it_and_obeys_nothing(payload: str) -> None:
    """No control character, no turned writing, no line of its own; and in a CI job no command to the runner."""
    lines = on_screen(everything(payload))
    assert [line for line in lines if not line.replace("\t", "").isprintable()] == []
    assert commands(ci_log("\n".join(lines))) == []


OURS = re.compile("t(able|head|body|r|h|d)_|heading_|bullet_list_|ordered_list_|list_item_|strong_")
QUIET = {"paragraph_open", "paragraph_close", "inline", "text", "text_special", "code_inline", "fence", "softbreak"}


@EVERY
def test_t90_a_document_has_our_structure_and_none_of_theirs(payload: str) -> None:
    """No link, image or HTML; as many headings, lists and tables as there are with a plain word."""
    found = document(everything(payload))
    assert {it for it in kinds(found) if not OURS.match(it)} <= QUIET
    assert structure(found) == structure(document(everything("word")))


def structure(text: str) -> Counter[str]:
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return Counter(token.type for token in tokens if token.type != "inline")


@EVERY
def test_t90_a_page_has_our_tags_and_none_of_theirs(payload: str) -> None:
    """As many elements as there are with a plain word, but for the lines of a difference: no script, no address, and
    no style but that of its policy.
    """
    seen, usual = Tags(html_document(everything(payload))), Tags(html_document(everything("word")))
    assert seen.counts - Counter(span=99) == usual.counts - Counter(span=99)
    assert not {"script", "a", "img", "iframe", "link", "object", "form", "base"} & seen.counts.keys()
    assert {name for name in seen.attributes if name.startswith("on") or name in ("href", "src", "style")} == set()
    assert not [it for it in seen.texts if not it.replace("\n", "").replace("\t", "").isprintable()]


class Tags(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.policy = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] += 1
        self.attributes |= {name for name, _ in attrs}
        if ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"] or ""

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_policy_of_a_page() -> None:
    """It allows nothing but the style sheet inside the page, by its digest."""
    page = html_document(everything("word"))
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert Tags(page).policy.split("; ")[:2] == ["default-src 'none'", f"style-src 'sha256-{digest}'"]


@pytest.mark.parametrize(("count", "most"), [(1000, 3_000_000), (100_000, 5_000_000)])
def test_size_of_a_picture(count: int, most: int) -> None:
    """It does not grow without bound: dots that lie on each other are drawn once."""
    points = [Point(f"1.{order}", order, DISCARDED, math.sin(order * order), "c") for order in range(1, count + 1)]
    points += [Point(f"1.{count + 1}", count + 1, DISCARDED, None, None)]
    drawn = svg(Series("score", "higher", 1, points, [Step(1, points[0].score or 0.0, "1.1", fresh=True)]))
    assert len(drawn) < most
    assert drawn.count("<circle") == (count if count <= 2000 else 0)
    assert drawn.count("no score") == 1


def test_nothing_to_draw() -> None:
    """A series without a score says so; a single score is a picture, too."""
    empty = Series("score", "higher", 1, [Point("1", 1, KEPT, None, None)], [])
    assert "nothing is scored yet" in html_document([HEAD, Section("all", "All", body=[empty])])
    assert svg(Series("score", "higher", 1, [Point("1", 1, KEPT, 0.0, "c")], [])).count("<circle") == 1


@EVERY
def test_t90_json_says_what_was_written(payload: str) -> None:
    """ASCII without a command, and the very same words for a program that reads it."""
    text = ci_log(json_text(record(everything(payload))))
    assert text.isascii()
    assert commands(text) == []
    found = json.loads(text)["all"]
    assert found["facts"]["whole"] == payload
    assert payload in found["text"]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_screen_has_a_width(width: int) -> None:
    """Nothing is wider, whatever it says; the end of a run is folded by the terminal."""
    screen = Terminal(width)
    sections = everything("words, many of them, 漢字 ")
    shown = [line for shape in (screen.digest, screen.whole) for line in shape([HEAD, *sections[2:]])]
    assert max(map(cells, shown)) <= width


def toy() -> Section:
    rows: dict[str, Words] = {"moons": Figure(12, "a dozen"), "name": Quote("Io"), "none": ""}
    return Section("toy", "Toys", body=facts(rows))


def test_one_function_shows_everywhere() -> None:
    """A section that has nothing but facts has a line on a screen, a part of a document, and values for programs."""
    assert "toy   moons a dozen, name Io" in on_screen([HEAD, toy()])
    assert "toy: moons a dozen, name Io" in on_screen([HEAD, toy()])
    assert "## Toys\n\n- moons: a dozen\n- name: `Io`\n" in document([HEAD, toy()])
    assert "<dt>moons</dt><dd>a dozen</dd>" in html_document([HEAD, toy()])
    assert record([toy()]) == {"toy": {"facts": {"moons": 12, "name": "Io"}}}


@pytest.mark.parametrize(
    ("section", "line"),
    [
        (Section("a", body=[Prose("all is well")]), "all is well"),
        (Section("a", body=[Table(["x"], [["1"], ["2"]])]), "2 rows"),
        (Section("a", body=[Lines(["x", "y"])]), "x; y"),
        (Section("a", body=[Listing("x")]), ""),
        (Section("a", line="", body=[Prose("only where there is room")]), ""),
        (Section("a"), ""),
    ],
)
def test_a_line_of_its_own(section: Section, line: str) -> None:
    """Where none is given, the body makes one; one that is empty stays so, and then a screen has no row for it."""
    assert "".join(part for part in section.brief if isinstance(part, str)) == line
    assert on_screen([section])[:1] == ([f"a  {line}"] if line else on_screen([section])[:1])
    assert bool(list(Terminal(80).digest([section]))) is bool(line)


def test_keys_are_promises() -> None:
    """Keys that a section gives are given as they are; one that has nothing to say is null, and has no heading."""
    given: dict[str, Any] = {"x": 1, "y": None}
    assert record([Section("a", line="seen", data=given), Section("b"), Section("c", line="seen", data={})]) == {
        "x": 1,
        "y": None,
        "b": None,
    }
    assert document([HEAD, Section("a", "Empty"), Section("b")]) == "# The head\n\nIn short.\n\n"


def test_lines_are_folded() -> None:
    """At a wide gap, at a space, else anywhere; characters that take two columns are counted as two."""
    assert [plain(row) for row in wrapped([("aa bb   cc dd", "")], 9)] == ["aa bb", "cc dd"]
    assert [plain(row) for row in wrapped([("aa bb ", ""), ("cc", "bold")], 6)] == ["aa bb", "cc"]
    assert [plain(row) for row in wrapped([("aabbcc", "")], 4)] == ["aabb", "cc"]
    assert [plain(row) for row in wrapped([("漢字漢字", "")], 5)] == ["漢字", "漢字"]
    assert plain(cut([("漢字", ""), ("abc", "bold")], 6)) == "漢字a…"


def test_columns_give_way() -> None:
    """The widest first, and none below what can be read."""
    assert fitting([5, 40, 30], 60) == [5, 27, 28]
    assert fitting([50, 50, 3], 43) == [20, 20, 3]
    assert fitting([50, 50], 2) == [6, 6]
