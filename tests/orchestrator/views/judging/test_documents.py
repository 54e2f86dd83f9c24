"""Every document of the gate is well formed, and inert, whatever a candidate wrote into it."""

import json
import re
import xml.etree.ElementTree as Xml
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.examine.gate import Decision, Gated
from orchestrator.views.judging.evidence import evidence, evidence_text, seal
from orchestrator.views.judging.junit import junit
from orchestrator.views.judging.markdown import markdown
from orchestrator.views.judging.sarif import sarif
from tests.orchestrator.views.judging.samples import HOSTILE, SECRET, documents, report

ANY_TEXT = st.text(st.characters(codec=None), max_size=200)


def test_the_judge_is_not_quoted() -> None:
    """T45: notes, tasks and metrics that only the judge knows are in no document."""
    for form, text in documents(report("worse", log="mine")).items():
        assert SECRET not in text, form


@given(ANY_TEXT, ANY_TEXT)
def test_junit_is_xml_for_any_text(why: str, log: str) -> None:
    """A parser reads it, finds the cases that there are and no others, and no character that XML forbids."""
    root = Xml.fromstring(junit(report(why, log=log)).encode())  # noqa: S314 - it is our own
    assert [case.get("name") for case in root.iter("testcase")] == [
        "change-applies",
        "trial",
        "judge",
        "guards:tests",
        "score",
    ]
    (suite,) = root.iter("testsuite")
    assert int(suite.get("failures", "")) == len(list(root.iter("failure")))
    assert int(suite.get("skipped", "")) == len(list(root.iter("skipped"))) == 1


def test_junit_keeps_the_words() -> None:
    """What was escaped is still readable, as text."""
    text = junit(report(HOSTILE, log=HOSTILE))
    assert "\x1b" not in text
    (message, *_) = [it.get("message") or "" for it in Xml.fromstring(text.encode()).iter("failure")]  # noqa: S314
    assert "<script>alert(1)</script>" in message
    assert "\\x1b[31m\\x00" in message


def test_junit_of_a_gate_that_could_not_judge() -> None:
    """It is an error, neither a pass nor a failure of the change."""
    broken = replace(report(), gated=Gated(Decision.UNJUDGED, "no engine", ()))
    (case,) = Xml.fromstring(junit(broken).encode()).iter("testcase")  # noqa: S314
    assert [child.tag for child in case] == ["error"]


@given(ANY_TEXT)
def test_markdown_tables_stay_tables(why: str) -> None:
    """No text adds a row or a column."""
    lines = markdown(report(why)).split("\n")
    rows = [line for line in lines[: lines.index("| metric | baseline | with the change |")] if line.startswith("|")]
    assert len(rows) == 2 + 5
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows)


def checked_sarif(log: Any) -> list[dict[str, Any]]:
    """The rules of the SARIF 2.1.0 schema that a reader cannot do without; the results."""
    assert log["version"] == "2.1.0"
    assert log["$schema"].startswith("https://")
    assert set(log) == {"$schema", "version", "runs"}
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
    for invocation in run["invocations"]:
        assert isinstance(invocation["executionSuccessful"], bool)
        for name in ("startTimeUtc", "endTimeUtc"):
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", invocation[name])
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert isinstance(result["message"]["text"], str)
        assert result["locations"]
        for location in result["locations"]:
            place = location["physicalLocation"]
            uri = place["artifactLocation"]["uri"]
            assert re.fullmatch(r"[A-Za-z0-9._~/%-]+", uri), uri
            assert not uri.startswith("/")
            assert place["region"]["startLine"] >= 1
    results: list[dict[str, Any]] = run["results"]
    return results


@given(ANY_TEXT)
def test_sarif_for_any_text(why: str) -> None:
    """It keeps to the schema, and each failed step is one result of its rule."""
    results = checked_sarif(json.loads(json.dumps(sarif(report(why)))))
    assert [result["ruleId"] for result in results] == ["guards", "score"]


def test_sarif_points_at_the_change() -> None:
    """The place is the file as the repository names it, with odd names encoded; of a change without a path, which
    readers want, the task file.
    """
    (first, _) = checked_sarif(sarif(report(path="sub dir/ä#1?.py")))
    place = first["locations"][0]["physicalLocation"]
    assert unquote(place["artifactLocation"]["uri"]) == "tasks/guess/workspace/sub dir/ä#1?.py"
    assert place["region"] == {"startLine": 7}
    (first, _) = checked_sarif(sarif(replace(report(), changed=())))
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "tasks/guess/blastdoor.toml"


@pytest.mark.parametrize("decision", [Decision.ACCEPTED, Decision.UNJUDGED])
def test_sarif_has_results_only_of_a_rejection(decision: Decision) -> None:
    """What was accepted, or not judged, is no finding against the change."""
    log = sarif(report(decision=decision))
    assert checked_sarif(log) == []
    assert log["runs"][0]["invocations"][0]["executionSuccessful"] is (decision is Decision.ACCEPTED)


def test_evidence_says_what_a_reviewer_signs() -> None:
    """Task, change, trees, images with their packages, commands, limits with their holders, verdicts, ledger."""
    found = evidence(report())
    assert found["change"] == {
        "sha256": "e" * 64,
        "bytes": 12,
        "paths": ["solve.py"],
        "base_tree": "b" * 64,
        "candidate_tree": "f" * 64,
    }
    assert found["ran"][0]["command"] == ("python3", "solve.py")
    assert found["ran"][0]["limits"]["wall"] == {"value": 30.0, "held_by": "controller"}
    assert found["posture"]["boundary"].startswith("docker/runc")
    assert found["posture"]["seen_inside"] == {"i:1": {"uid": "5"}}
    assert found["images"][0]["packages"] == [{"type": "deb", "name": "tar", "version": "1.34"}]
    assert found["candidate"]["metrics"] == {"score": 0.5}
    assert found["ledger"] == {"seq": 30, "hash": "d" * 64}
    assert found["blastdoor"] == "0.1.0"


def test_what_is_weaker_is_said() -> None:
    """Where the candidate was sent away, evidence and summary name both boundaries and every caveat of the place."""
    here = report()
    assert here.witness
    rented = replace(
        here.witness, backend="modal", boundary="modal: a sandbox of Modal's", caveats=("no | seccomp of ours",)
    )
    away = replace(here, witness=rented)
    posture = evidence(away)["posture"]
    assert posture["boundary"] == "modal: a sandbox of Modal's"
    assert posture["judge_boundary"].startswith("docker/runc")
    assert posture["caveats"] == ["no | seccomp of ours"]
    assert "| judged on | `docker/runc: namespaces on the host's kernel` |" in markdown(away)
    assert "| caveat | `no \\| seccomp of ours` |" in markdown(away)
    assert "judged on" not in markdown(here)


def test_evidence_has_one_digest() -> None:
    """The same report gives the same bytes, another gives others; nothing in them acts on a terminal."""
    text = evidence_text(report(HOSTILE))
    assert seal(text) == seal(evidence_text(report(HOSTILE))) != seal(evidence_text(report("other")))
    assert text.isascii()
    assert "\x1b" not in text
