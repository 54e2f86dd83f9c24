"""Which images are built again, and when."""

from build_images import plan


def test_plan_is_stable() -> None:
    """The same definition gives the same digests, so that a second run has nothing to do."""
    assert [image.digest for image in plan(None)] == [image.digest for image in plan(None)]


def test_base_travels_down() -> None:
    """Another base changes what stands on it, and nothing else."""
    first, second = ({image.name: image.digest for image in plan(base)} for base in ("a", "b"))
    changed = {name for name in first if first[name] != second[name]}
    assert changed == {"blastdoor-trial", "blastdoor-attack"}
