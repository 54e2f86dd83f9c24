"""The package's face: every name on it is there, is explained, and stays."""

import inspect
import re

import pytest

import blastdoor


def test_its_docstring_lists_every_name() -> None:
    """Under what each is for, and no other."""
    listed = re.findall(r"^(?:To|One|What) [a-z ]+: +(.+)$", blastdoor.__doc__ or "", re.MULTILINE)
    assert sorted(name for line in listed for name in line.split(", ")) == sorted(blastdoor.__all__)


@pytest.mark.parametrize("name", blastdoor.__all__)
def test_every_name_is_explained(name: str) -> None:
    """By words of its own; a function also by what it takes, gives and raises."""
    found = getattr(blastdoor, name)
    assert inspect.getdoc(found), name
    if inspect.isclass(found):
        assert vars(found)["__doc__"], name
    else:
        assert re.findall(r"^(Args|Returns|Raises):$", inspect.getdoc(found) or "", re.MULTILINE) == [
            "Args",
            "Returns",
            "Raises",
        ]
        for parameter in inspect.signature(found).parameters:
            assert f"    {parameter}: " in (inspect.getdoc(found) or ""), parameter


def test_names_that_stay() -> None:
    """A name that goes breaks somebody's program: it is announced first, then taken from this list."""
    assert set(blastdoor.__all__) >= {
        "Backend", "BackendContext", "Brief", "Bundle", "CannotOpen", "Decision", "DockerConfig", "Ending", "Exhausted",
        "Finished", "Flags", "How", "Job", "LedgerError", "Limits", "Lost", "ModalConfig", "Outcome", "Past", "Peers",
        "PluginFailed", "Preset", "Proposal", "Proposer", "ProposerContext", "Provider", "Reading", "Refused", "Rule",
        "RuleContext", "SandboxError", "Settings", "Site", "SkyPilotConfig", "Stalled", "Start", "Task", "TaskError",
        "Tried",
        "Unavailable", "load_task", "read_campaign", "search",
    }  # fmt: skip
