"""What a second of a chamber costs."""

import pytest

from sandbox import Limits, Refused
from sandbox.price import LOCAL, MODAL, Rates


def test_price_is_the_sum_of_its_parts() -> None:
    """Processors, memory and GPUs are added up; one's own machine costs nothing, whatever is asked of it."""
    assert LOCAL.per_second(Limits(cpus=64, memory="1TiB", gpu="A100:8")) == 0
    rates = Rates(cpu=1.0, memory_gib=0.1, gpu={"A100": 10.0})
    assert rates.per_second(Limits(cpus=2, memory="4GiB")) == pytest.approx(2.4)
    assert rates.per_second(Limits(cpus=2, memory="4GiB", gpu="A100:3")) == pytest.approx(32.4)


@pytest.mark.parametrize("kind", ["any", "H9000"])
def test_unknown_gpu_is_refused(kind: str) -> None:
    """A GPU without a price is refused by name: a wrong price would be worse."""
    with pytest.raises(Refused, match=f"{kind}; known are T4"):
        MODAL.per_second(Limits(gpu=f"{kind}:1"))
