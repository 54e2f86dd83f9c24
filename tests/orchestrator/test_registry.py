"""What is chosen by a name: built in or brought by a package, it is found in the same way, and faults have an owner."""

from pathlib import Path

import pytest

from orchestrator.choices import AGENTS, PARENTS, PROPOSERS, PRUNERS
from orchestrator.registry import ChoiceError, Kind, listed
from tests.plugins import COUNTING, PROPOSER, Packages


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packages:
    return Packages(tmp_path, monkeypatch)


@pytest.mark.parametrize("kind", [PROPOSERS, AGENTS, PARENTS, PRUNERS], ids=lambda kind: kind.group)
def test_what_is_built_in_is_there(kind: Kind) -> None:
    """Every declared name leads to code of ours."""
    for name in kind.built_in:
        assert kind.load(name) is not None
        assert not kind.find(name).is_outside


def test_a_package_brings_a_name(packages: Packages) -> None:
    """It is listed after what is built in, and known with its package and version."""
    packages.install()
    assert PROPOSERS.names() == [*PROPOSERS.built_in, "counting"]
    found = PROPOSERS.find("counting")
    assert (found.package, found.version) == ("blastdoor-counting", "1.2")
    assert PROPOSERS.load("counting").__name__ == "Counting"
    assert PROPOSERS.faults() == []


@pytest.mark.parametrize(
    ("name", "says"),
    [("ranndom", 'not "ranndom"; did you mean "random"?'), ("xyzzy", f'{listed([*PROPOSERS.built_in])}, not "xyzzy"')],
)
def test_a_name_that_nothing_has(name: str, says: str) -> None:
    """All names, and the nearest one where one is near."""
    with pytest.raises(ChoiceError) as caught:
        PROPOSERS.find(name)
    assert str(caught.value).startswith('must be "grid", "random", ')
    assert str(caught.value).endswith(says)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import nosuchthing", "cannot be loaded (ModuleNotFoundError: No module named 'nosuchthing'); mend"),
        ("raise SystemExit(3)", "cannot be loaded (SystemExit: 3)"),
        ("blastdoor_interface = 1", "has no attribute 'Counting'"),
        ("def broken(:", "cannot be loaded (SyntaxError: "),
        (PROPOSER.replace("interface = 1", "interface = 0"), "says blastdoor_interface = 0, and this is interface 1"),
        (PROPOSER.replace("blastdoor_interface = 1", ""), "interface 1; its author adds blastdoor_interface = 1"),
    ],
)
def test_a_package_that_is_wrong(packages: Packages, code: str, says: str) -> None:
    """Its use is refused with its name and version; it is still listed, and all else is as it was."""
    packages.install(code)
    with pytest.raises(ChoiceError) as caught:
        PROPOSERS.load("counting")
    assert str(caught.value).startswith('the proposer "counting" of the package blastdoor-counting 1.2 ')
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not PROPOSERS.has("counting", "asks_a_model")
    assert "counting" in PROPOSERS.names()
    assert callable(PROPOSERS.load("random"))


def test_a_taken_name(packages: Packages) -> None:
    """What is built in stays what it is, and the package is named."""
    packages.install(announced={"blastdoor.proposers": {"random": "{module}:Counting"}})
    assert not PROPOSERS.find("random").is_outside
    assert PROPOSERS.names().count("random") == 1
    [fault] = PROPOSERS.faults()
    said = 'blastdoor-counting 1.2 brings a proposer "random", a name that is built in; it is left out; rename it'
    assert fault == said


def test_two_packages_with_one_name(packages: Packages) -> None:
    """Neither is used by chance: both are named."""
    packages.install()
    packages.install(package="another", version="3")
    assert "counting" not in PROPOSERS.names()
    with pytest.raises(ChoiceError, match=r"brought by two packages, another 3 and blastdoor-counting 1.2; remove one"):
        PROPOSERS.find("counting")
    assert len(PROPOSERS.faults()) == 1


def test_a_name_that_is_none(packages: Packages) -> None:
    """It would reach terminals and ledgers: it is left out."""
    packages.install(announced={"blastdoor.proposers": {"a b\x1b": "{module}:Counting"}})
    assert PROPOSERS.names() == [*PROPOSERS.built_in]
    assert "whose name is none ('a b\\x1b')" in PROPOSERS.faults()[0]


def test_traits_of_a_package(packages: Packages) -> None:
    """What a proposer of others says of itself counts as what is declared of ours."""
    packages.install(PROPOSER.replace("    serial = False", "    serial = False\n    asks_a_model = True"), COUNTING)
    assert PROPOSERS.has("counting", "asks_a_model")
    assert not PROPOSERS.has("counting", "offers_several")


def test_lent(packages: Packages) -> None:
    """What a caller hands over is known by its name until it is taken back; no name is taken twice."""
    packages.install()
    with PROPOSERS.lend("mine", mine := object()):
        assert PROPOSERS.load("mine") is mine
        assert PROPOSERS.find("mine").is_outside
    with pytest.raises(ChoiceError, match="must be"):
        PROPOSERS.find("mine")
    with (
        pytest.raises(ChoiceError, match=r'"counting" is that of another proposer of the package blastdoor-c'),
        PROPOSERS.lend("counting", mine),
    ):
        raise AssertionError("it was lent")
