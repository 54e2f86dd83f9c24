"""Many stalls at once are nobody's doing: the campaign waits, and then tries with one."""

from orchestrator.loop.storms import Storm


def test_one_attempt_that_stalls_again_and_again_is_no_storm() -> None:
    """Its own limit ends it in quarantine; the others go on."""
    storm = Storm()
    assert [storm.stalled("1.1", now) for now in (0, 10, 20)] == [None, None, None]


def test_two_attempts_that_stall_pause_the_campaign() -> None:
    """The queue is not burnt while the provider is down; the line says what happens next."""
    storm = Storm()
    storm.stalled("1.1", 0)
    assert storm.stalled("1.2", 5) == "2 attempts stalled and none got through; one is tried in 1 min"
    assert not storm.is_due(60)
    assert storm.is_due(65)
    assert storm.trying


def test_a_failed_try_doubles_the_pause_up_to_a_limit() -> None:
    """One attempt at a time is spent on finding out, ever less often."""
    storm = Storm()
    storm.stalled("1.1", 0)
    now, pauses = 1.0, []
    for number in range(8):
        assert storm.stalled(f"1.{number + 2}", now) is not None
        start = now
        while not storm.is_due(now):
            now += 1
        pauses.append(now - start)
    assert pauses == [60, 120, 240, 480, 960, 1800, 1800, 1800]


def test_stalls_long_apart_are_no_storm() -> None:
    """What happened an hour ago says nothing of now."""
    storm = Storm()
    storm.stalled("1.1", 0)
    assert storm.stalled("1.2", 3600) is None


def test_an_answer_in_between_ends_it() -> None:
    """The provider is there after all."""
    storm = Storm()
    storm.stalled("1.1", 0)
    storm.answered()
    assert storm.stalled("1.2", 5) is None


def test_those_under_way_when_it_began_do_not_lengthen_it() -> None:
    """They were started before anybody knew."""
    storm = Storm()
    storm.stalled("1.1", 0)
    storm.stalled("1.2", 1)
    assert storm.stalled("1.3", 2) is None
    assert storm.is_due(61)
