"""Elements of HTML and SVG. Whatever stands in one is text, unless it was made here."""

from html import escape

from orchestrator.text import printable

# What a style of the terminal is called on a page; a style that is not here has no class.
_COLOURS = ("green", "red", "blue", "cyan", "magenta", "yellow", "bright_black", "bold", "dim")


def content(text: str, keep: str = "") -> str:
    """Words of anybody between tags: no sign of them acts, turns the line or hides."""
    return escape(printable(text, keep), quote=True)


def element(tag: str, within: str = "", /, **attributes: object) -> str:
    """`within` was made here; values of attributes are quoted, and words of others in them are `printable` before."""
    named = "".join(f' {name}="{escape(str(value), quote=True)}"' for name, value in attributes.items())
    return f"<{tag}{named}>{within}</{tag}>"


def class_of(style: str) -> str:
    """Of a style like "bold green"."""
    return " ".join(word.replace("_", "-") for word in style.split() if word in _COLOURS)
