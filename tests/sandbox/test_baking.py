"""What may stand in a spec, and when two specs are one image."""

import pytest
from pydantic import ValidationError

from sandbox import ImageSpec, Refused
from sandbox.baking import baked_name, last_word

BASE = "blastdoor-trial:latest"


def spec(**parts: tuple[str, ...]) -> ImageSpec:
    return ImageSpec(base=BASE, **parts)


def test_packages_by_name() -> None:
    """Names, extras and versions are what pip may be asked for, and Debian a name, an architecture and a version."""
    pip = ("numpy==2.1.*", "scikit-learn>=1.5,<2", "uvicorn[standard] ~= 0.30", "a", "zope.interface", "x===1.0+cpu")
    assert spec(pip=pip).pip == pip
    apt = ("gcc", "g++", "libc6-dev", "gcc=4:12.2.0-3", "libc6:arm64", "python3.11")
    assert spec(apt=apt).apt == apt


OPTIONS = ("-r requirements.txt", "--index-url=https://example.org", "numpy\n--pre")
PLACES = (
    *("git+https://example.org/x", "x @ https://example.org/x.whl", "https://example.org/x.tar.gz", "./local"),
    "/local",
)
NO_NAMES = ("", " numpy", "local/", "numpy; python_version > '3'", "numpy ==", "numpy pandas", "a" * 300)


@pytest.mark.parametrize("name", [*OPTIONS, *PLACES, *NO_NAMES])
def test_what_could_run_code_here_is_no_name(name: str) -> None:
    """An address, a file or an option makes pip build something: none of them is a package by name."""
    with pytest.raises(Refused, match="not a package by name"):
        spec(pip=(name,))


@pytest.mark.parametrize("name", ["", "-y", "GCC", "gcc libc6", "gcc-", "gcc;id", "$(id)", "./x.deb", "gcc\n", "gcc="])
def test_bad_debian_names(name: str) -> None:
    """Options, files, removals and shell words are not names."""
    with pytest.raises(Refused, match="not the name of a Debian package"):
        spec(apt=(name,))


@pytest.mark.parametrize("line", ["", "  ", "echo \0", "x" * 40_000])
def test_bad_run_lines(line: str) -> None:
    """A line that could not be run is refused before anything is made."""
    with pytest.raises(Refused, match="run line"):
        spec(run=(line,))


def test_strict_and_frozen() -> None:
    """A spec is what it says: no unknown key, no list, no change."""
    with pytest.raises(ValidationError):
        ImageSpec(base=BASE, conda=("x",))  # type: ignore[call-arg]  # the point of the test
    with pytest.raises(ValidationError):
        ImageSpec(base=BASE, pip=["x"])  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(ValidationError):
        ImageSpec(base="-x; y")
    with pytest.raises(ValidationError):
        spec().base = "other"  # type: ignore[misc]  # the point of the test


def test_what_makes_another_image() -> None:
    """The base's content, each list, and the order of lines; neither the base's name nor the order of packages, nor
    naming one twice.
    """
    assert spec().is_empty
    found = [
        spec(pip=("a",)).digest("sha256:1"),
        spec(pip=("a",)).digest("sha256:2"),
        spec(apt=("aa",)).digest("sha256:1"),
        spec(run=("a",)).digest("sha256:1"),
        spec(run=("a", "b")).digest("sha256:1"),
        spec(run=("b", "a")).digest("sha256:1"),
        spec(pip=("b",)).digest("sha256:1"),
    ]
    assert len(set(found)) == len(found)
    assert not any(spec(**{kind: ("aa",)}).is_empty for kind in ("pip", "apt", "run"))
    assert ImageSpec(base="x", run=("a",)).digest("sha256:1") == found[3]
    turned = (spec(pip=("a", "b"), apt=("gcc", "make")), spec(pip=("b", "a", "b"), apt=("make", "gcc")))
    assert len({it.digest("sha256:1") for it in turned}) == 1
    assert baked_name("0123456789abcdef" * 4) == "blastdoor-baked:0123456789abcdef"


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (b"", "it said nothing"),
        (b"a\nERROR: b\nnotice\n", "ERROR: b"),
        (b"a\nb\n\n", "b"),
        (b"ERROR: because\nERROR: for help visit an address\n", "ERROR: because"),
        (b"ERROR: \x1b[31mred\xff", "ERROR: ?[31mred\N{REPLACEMENT CHARACTER}"),
        (b"x" * 1000, "x" * 300),
    ],
)
def test_one_line_of_a_failure(output: bytes, line: str) -> None:
    """The line that says most, without control characters, and never a page."""
    assert last_word(output, ["ERROR:"]) == line
