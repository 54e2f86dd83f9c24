"""Prices are dated data; a model without one is an error that says what to do."""

from pathlib import Path

import pytest

from orchestrator.domain.model_use import Tokens
from orchestrator.llm.prices import BadPrices, Prices, UnknownModel
from orchestrator.wiring.models import MODELS

MILLION = 1_000_000


def test_all_kinds_have_their_price() -> None:
    """Input, output, reads and both kinds of writes of Claude Sonnet 4.5 cost what the provider's page says."""
    price = Prices.load(None).of("claude-sonnet-4-5-20250929")
    assert price.of(Tokens(input=100_000), 0) == 300_000
    assert price.of(Tokens(output=100_000), 0) == 1_500_000
    assert price.of(Tokens(cache_read=100_000), 0) == 30_000
    assert price.of(Tokens(cache_write=100_000), 0) == 375_000
    assert price.of(Tokens(cache_write=100_000), 100_000) == 600_000
    assert Prices.load(None).of("claude-haiku-5-5").of(Tokens(input=1), 0) == 1, "a part of a microdollar counts as one"


def test_long_requests() -> None:
    """Past its bound, the whole of a request has the higher price; cached input counts for the bound."""
    price = Prices.load(None).of("claude-sonnet-4-5")
    assert price.of(Tokens(input=100_000, cache_read=100_000), 0) == 330_000
    assert price.of(Tokens(input=100_000, cache_read=100_001), 0) == 600_000 + 60_001
    assert price.worst(200_001, 0, written=False, hour=False) == 200_001 * 6


def test_worst_case_is_no_less_than_any_bill() -> None:
    """However the input is billed, the worst case covers it."""
    for name in Prices.load(None).names:
        price = Prices.load(None).of(name)
        for given in (1, 1000, 150_000, 250_000):
            worst = price.worst(given, 77, written=True, hour=True)
            bills = [Tokens(input=given), Tokens(cache_read=given), Tokens(cache_write=given)]
            assert all(price.of(bill + Tokens(output=77), bill.cache_write) <= worst for bill in bills)


def test_default_models_have_a_price() -> None:
    """Who sets nothing asks models whose price is known, and the prices say of when they are."""
    prices = Prices.load(None)
    assert all(prices.of(name) for names in MODELS.values() for name in names)
    assert prices.date is not None


def test_unknown_model() -> None:
    """One line that names the model, the way out, and the known ones."""
    with pytest.raises(UnknownModel) as error:
        Prices.load(None).of("gpt\n5")
    told = str(error.value)
    assert "\n" not in told
    assert "setting prices" in told
    assert "claude-sonnet-5-5" in told


def test_own_file(tmp_path: Path) -> None:
    """A user's file adds models and changes prices, by any of a model's names; the others stay."""
    own = tmp_path / "prices.toml"
    own.write_text(
        '[models.local]\ninput = 0.5\noutput = 1\n[models."claude-sonnet-4-5-20250929"]\ninput=1\noutput=2\n'
    )
    prices = Prices.load(own)
    assert prices.of("local").of(Tokens(input=10, cache_read=10, cache_write=10), 5) == 5 + 5 + 4 + 5
    assert prices.of("claude-sonnet-4-5-20250929").of(Tokens(output=MILLION), 0) == 2 * MILLION
    assert prices.of("claude-sonnet-4-5").of(Tokens(output=100_000), 0) == 1_500_000
    assert prices.of("claude-opus-4-5").of(Tokens(output=MILLION), 0) == 25 * MILLION


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[models.a", "is no TOML"),
        ("[models.a]\ninput = 1\n", "models.a.output"),
        ("[models.a]\ninput = -1\noutput = 1\n", "0 or more"),
        ('[models.a]\ninput = "free"\noutput = 1\n', "must be a number"),
        ("[models.a]\ninput = nan\noutput = 1\n", "0 or more"),
        ("[models.a]\ninput = 1\noutput = 1\ncached = 2\n", "cached"),
    ],
)
def test_bad_file(tmp_path: Path, text: str, said: str) -> None:
    """A file that cannot be used is one line that says where; one that is not there is not passed over."""
    own = tmp_path / "prices.toml"
    own.write_text(text)
    with pytest.raises(BadPrices, match=said) as error:
        Prices.load(own)
    assert "\n" not in str(error.value)
    with pytest.raises(BadPrices, match="cannot be read"):
        Prices.load(tmp_path / "none.toml")
