"""A campaign of each kind in every view of a real browser, and the page as a file that opens from a disk."""

import shutil
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.views.page.exported import export_page
from tests.orchestrator.views.campaign.builder import Story
from tests.orchestrator.views.campaign.conftest import Stage
from tests.orchestrator.views.campaign.kinds import KINDS, OTHERS
from tests.orchestrator.views.page.browsing import NARROW, VIEWS, WALL, Seen, browser, look, patient
from tests.orchestrator.views.page.conftest import Served
from tests.orchestrator.views.page.stories import EVIL, comparison, proposed_by_models

pytestmark = pytest.mark.touching("page")

__all__ = ["browser", "look"]  # fixtures
_ALL: list[Callable[..., Story]] = [*KINDS, *OTHERS, proposed_by_models]
_NAMES = [*(kind.__name__ for kind in _ALL), "01a", "01b"]
_BAD = ("serious", "critical")


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("campaigns")
    for kind in _ALL:
        made = Stage(folder / kind.__name__)
        made.story = kind(made.folder)
        made.write()
    comparison(folder / "compared")
    return folder


@pytest.fixture(scope="module")
def shown(campaigns: Path) -> Iterator[Served]:
    served = Served(campaigns)
    yield served
    served.close()


def views_of(kind: str) -> list[str]:
    """Node names begin with the run that is looked at."""
    if kind in ("noisy_scores", "combination"):
        return [view.replace("1.1", "2.1").replace("=1,2.1,1.2", "=2,2.1") for view in VIEWS]
    return [
        "compare?nodes=1" if view.startswith("compare") else view
        for view in VIEWS
        if kind != "just_begun" or view != "node/1.1"
    ]


def ids_of(seen: Seen) -> dict[str, str]:
    rows = seen.page.evaluate("() => fetch('api/campaigns').then((it) => it.json())")
    return {Path(row["folder"]).name: row["id"] for row in rows}


def test_each_kind_in_each_view(shown: Served, look: Callable[..., Seen]) -> None:
    """Nothing is refused, nothing is an error, nothing is wider than a telephone."""
    seen = look(shown, NARROW)
    ids = ids_of(seen)
    assert sorted(ids) == sorted(_NAMES)
    for kind in _NAMES:
        seen.id = ids[kind]
        for view in views_of(kind):
            page = seen.go(view)
            where = f"{kind} {view}"
            assert not page.query_selector_all("main .notice"), (where, page.inner_text("main"))
            assert page.evaluate("() => document.documentElement.scrollWidth") <= NARROW[0], where


def test_what_is_special_of_a_kind_is_shown(shown: Served, look: Callable[..., Seen]) -> None:
    """Islands and combinations in the tree, the parts of a winner, held-out queries, what a comparison comes to."""
    seen = look(shown)
    ids = ids_of(seen)
    for kind, view, wanted in (
        ("islands", "tree", "island 2"),
        ("combination", "tree", "combination"),
        ("minimised", "node/1.1", "ballast"),
        ("minimised", "node/1.1.1", "ballast"),
        ("pruned_and_held_out", "trust", "2 asked"),
        ("judged_in_one_chamber", "trust", "shared"),
        ("models_and_roles", "money", "verifier"),
        ("01b", "report", f"proposer={EVIL}"),
        ("noisy_scores", "trust", "Verified up to record"),
    ):
        seen.id = ids[kind]
        expect(seen.go(view).locator("main")).to_contain_text(wanted)


@pytest.mark.parametrize(("size", "scheme"), [(WALL, "dark"), (NARROW, "light")])
def test_axe_finds_nothing_serious(shown: Served, look: Callable[..., Seen], size: Any, scheme: str) -> None:
    """In every view of the campaign that has something in each; contrast is looked at in light and in dark."""
    seen = look(shown, size, scheme)
    seen.id = ids_of(seen)["proposed_by_models"]
    seen.page.evaluate((resources.files("axe_playwright_python") / "axe.min.js").read_text())
    bad = _violations(seen.page, "overview")
    for view in VIEWS:
        bad += _violations(seen.go(view), view)
    assert bad == []


def _violations(page: Page, view: str) -> list[str]:
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")["violations"]
    nodes = [(it, node) for it in found if it["impact"] in _BAD for node in it["nodes"][:3]]
    return [f"{view}: {it['id']}: {node['html'][:150]} {node['failureSummary'][:200]}" for it, node in nodes]


def test_the_page_as_a_file(campaigns: Path, browser: Browser, tmp_path: Path) -> None:
    """It opens from a disk with the same views, asks nobody for anything, runs nothing that it tells."""
    folder, file = tmp_path / "away", tmp_path / "page.html"
    for kind in ("proposed_by_models", "noisy_scores"):
        shutil.copytree(campaigns / kind, folder / kind)
    file.write_text(export_page([folder], None))
    assert len(file.read_bytes()) < 1_000_000
    shutil.rmtree(folder)
    context = patient(browser, offline=True)
    page, faults = context.new_page(), []  # type: Page, list[str]
    page.on("console", lambda it: faults.append(it.text) if it.type in ("error", "warning") else None)
    page.on("pageerror", lambda it: faults.append(str(it)))
    page.on(
        "request",
        lambda it: None if it.url == file.as_uri() or it.url.startswith(("data:", "blob:")) else faults.append(it.url),
    )
    page.goto(file.as_uri())
    page.click(".overview a:has-text('speedup')")
    page.wait_for_selector(".plot")
    base = page.evaluate("() => location.hash")
    for view in VIEWS:
        before = page.evaluate("() => document.documentElement.dataset.ready")
        page.evaluate("(it) => { location.hash = it; }", f"{base}/{view}")
        page.wait_for_function("(it) => document.documentElement.dataset.ready !== it", arg=before)
        assert not page.query_selector_all("main .notice"), (view, page.inner_text("main"))
        assert page.evaluate("() => window.evil") is None
    page.evaluate("(it) => { location.hash = it; }", f"{base}/node/1.1")
    page.wait_for_selector(".d-new")
    assert EVIL in page.inner_text("main")
    page.fill("input[aria-label='Another node to compare with']", "1.2")
    page.press("input[aria-label='Another node to compare with']", "Enter")
    page.wait_for_selector("main .notice:has-text('not in the file')")
    page.evaluate("(it) => { location.hash = it; }", base)
    page.wait_for_selector(".attempts .row:has-text('case')")
    counted = page.inner_text(".attempts [role=status]")
    page.keyboard.press("/")
    page.keyboard.type("case hex")
    expect(page.locator(".attempts [role=status]")).not_to_have_text(counted)
    context.close()
    assert faults == []
