"""Rows about one job at a time. Each docstring is the truth that the row tests."""

import asyncio

from sandbox.backend import Backend, Channel
from sandbox.bundle import Bundle
from sandbox.conformance import programs
from sandbox.conformance.check import EMPTY, SMALL, Ear, NotConforming, expect, expect_ending, one_backend, run
from sandbox.conformance.programs import Program
from sandbox.errors import Refused
from sandbox.job import Ending, Enforcer, Job, Limits, Mode, Needs, Outcome
from sandbox.wire.log import Report


@one_backend
async def success_with_outputs(backend: Backend) -> None:
    """A program that succeeds hands over its files, byte for byte, and both of its streams are the log."""
    outcome = await run(backend, programs.WRITE, programs.QUESTION)
    expect_ending(outcome, Ending.COMPLETED)
    expect(outcome.exit_code == 0, outcome.exit_code)
    expect(outcome.outputs == {"answer": b"six times seven 42\n", "deep/er/file": b"\x00\xff"}, outcome.outputs)
    expect(sorted(outcome.log_tail.splitlines()) == [b"to stderr", b"to stdout"], outcome.log_tail)
    expect(outcome.usage.run_s > 0, "no time was measured")


@one_backend
async def facts_before_delivery(backend: Backend) -> None:
    """A chamber tells what it is before it has seen a hostile byte."""
    async with await backend.open(programs.NOTHING.job(limits=SMALL)) as chamber:
        expect(chamber.facts.get("cpu"), f"no cpu among {dict(chamber.facts)}")


@one_backend
async def non_zero_exit(backend: Backend) -> None:
    """A non-zero exit is a value, with the outputs that there were."""
    outcome = await run(backend, programs.EXIT_3)
    expect_ending(outcome, Ending.FAILED)
    expect((outcome.exit_code, outcome.outputs) == (3, {"partial": b"x"}), outcome)


@one_backend
async def crash_by_signal(backend: Backend) -> None:
    """A crash is a value that names its signal."""
    outcome = await run(backend, programs.SEGFAULT)
    expect_ending(outcome, Ending.FAILED)
    expect(outcome.signal == 11, f"exit code {outcome.exit_code}")


@one_backend
async def missing_command(backend: Backend) -> None:
    """A command that does not exist fails by itself, with the shell's word for it in the log."""
    async with await backend.open(Job(command=("no-such-program",), limits=SMALL)) as chamber:
        outcome = await chamber.run(EMPTY)
    expect_ending(outcome, Ending.FAILED)
    expect(outcome.exit_code == 127 and b"not found" in outcome.log_tail, outcome)


@one_backend
async def environment_and_folder(backend: Backend) -> None:
    """The job's variables and working folder reach the program, quoting and all."""
    bundle = Bundle({"a b/$c/x": b""})
    outcome = await run(backend, programs.LOOK_AROUND, bundle, env={"COLOUR": "'red' $(x)"}, workdir="a b/$c")
    expect(outcome.outputs.get("seen") == b"'red' $(x) a b/$c\n", outcome)


@one_backend
async def empty_output(backend: Backend) -> None:
    """No outputs are no outputs: not an error, and never a pass by themselves."""
    outcome = await run(backend, programs.NOTHING)
    expect_ending(outcome, Ending.COMPLETED)
    expect(outcome.outputs == {}, outcome.outputs)


@one_backend
async def timeout(backend: Backend) -> None:
    """The wall clock is ours: a program that sleeps past its limit is ended."""
    outcome = await run(backend, programs.SLEEP, limits=SMALL.model_copy(update={"wall": 0.5}))
    expect_ending(outcome, Ending.TIMED_OUT)
    expect(not outcome.told, "the ending rests on the chamber's word")


@one_backend
async def out_of_memory(backend: Backend) -> None:
    """Memory past its limit is its own ending, on the provider's evidence."""
    outcome = await run(backend, programs.GREEDY)
    expect_ending(outcome, Ending.OUT_OF_MEMORY)
    expect(not outcome.told, "the ending rests on the chamber's word")


@one_backend
async def output_byte_cap(backend: Backend) -> None:
    """Outputs past their cap are refused, not truncated."""
    outcome = await run(backend, programs.LARGE, limits=SMALL.model_copy(update={"output_bytes": 100_000}))
    expect_ending(outcome, Ending.OUTPUT_REFUSED)
    expect(outcome.outputs == {}, "outputs were handed over")


@one_backend
async def output_file_cap(backend: Backend) -> None:
    """Too many files are refused as well."""
    outcome = await run(backend, programs.MANY, limits=SMALL.model_copy(update={"output_files": 10}))
    expect_ending(outcome, Ending.OUTPUT_REFUSED)


@one_backend
async def log_cap(backend: Backend) -> None:
    """A log past its cap ends the program at once; what was within the cap is kept."""
    outcome = await run(backend, programs.CHATTY, limits=SMALL.model_copy(update={"log_bytes": 1000}))
    expect_ending(outcome, Ending.LOG_OVERFLOW)
    expect(len(outcome.log_tail) == 1000, f"{len(outcome.log_tail)} bytes of log")


@one_backend
async def build_fails(backend: Backend) -> None:
    """A build step that fails is its own ending, and the program never runs."""
    outcome = await run(backend, programs.WRITE, programs.QUESTION, build=("sh", "-c", programs.EXIT_3.script))
    expect_ending(outcome, Ending.BUILD_FAILED)
    expect(outcome.exit_code == 3 and b"to stdout" not in outcome.log_tail, outcome)


@one_backend
async def build_timeout(backend: Backend) -> None:
    """A build step has a limit of its own."""
    build = ("sh", "-c", programs.SLEEP.script)
    outcome = await run(backend, programs.WRITE, build=build, limits=SMALL.model_copy(update={"build": 0.5}))
    expect_ending(outcome, Ending.BUILD_TIMED_OUT)


@one_backend
async def live_log_and_reports(backend: Backend) -> None:
    """Lines and reports are heard while the program runs."""
    ear = Ear()
    async with await backend.open(programs.SLEEP.job(limits=SMALL, needs=Needs(live_log=True))) as chamber:
        running = asyncio.create_task(chamber.run(EMPTY, listener=ear))
        await ear.hears()
        expect(not running.done(), "it was over before it was heard")
        await chamber.kill()
        expect_ending(await running, Ending.KILLED)
    expect(ear.reports == [Report(1, 0.5)], ear.reports)


async def _stopped_while_working(backend: Backend, program: Program, limits: Limits) -> Outcome:
    ear = Ear()
    async with await backend.open(program.job(limits=limits, needs=Needs(stop=True))) as chamber:
        running = asyncio.create_task(chamber.run(EMPTY, listener=ear))
        await ear.hears()
        await chamber.stop()
        return await running


@one_backend
async def stop_with_partial_outputs(backend: Backend) -> None:
    """A program told to stop may flush, and what it flushed is harvested."""
    outcome = await _stopped_while_working(backend, programs.FLUSH, SMALL)
    expect_ending(outcome, Ending.STOPPED)
    expect(outcome.outputs == {"partial": b"flushed\n"}, outcome.outputs)


@one_backend
async def stop_ignored(backend: Backend) -> None:
    """A program that ignores the order to stop is killed after its grace; its outputs so far are harvested."""
    limits = SMALL.model_copy(update={"grace": 0.3})
    outcome = await _stopped_while_working(backend, programs.STUBBORN, limits)
    expect_ending(outcome, Ending.KILLED)
    expect(outcome.outputs == {"partial": b"early\n"}, outcome.outputs)


@one_backend
async def kill_twice(backend: Backend) -> None:
    """Killing a dead chamber is not an error, and neither is stopping it."""
    async with await backend.open(programs.NOTHING.job(limits=SMALL)) as chamber:
        await chamber.kill()
        await chamber.kill()
        await chamber.stop()


@one_backend
async def used_once(backend: Backend) -> None:
    """A chamber takes one bundle in its life."""
    async with await backend.open(programs.NOTHING.job(limits=SMALL)) as chamber:
        await chamber.run(EMPTY)
        try:
            await chamber.run(EMPTY)
        except Refused:
            return
    raise NotConforming("it ran twice")


@one_backend
async def bundle_over_cap(backend: Backend) -> None:
    """A bundle over its cap is refused before anything is sent."""
    try:
        await run(backend, programs.NOTHING, Bundle({"x": bytes(2000)}), limits=Limits(bundle_bytes=1024))
    except Refused:
        return
    raise NotConforming("it was accepted")


@one_backend
async def needs_refused_at_open(backend: Backend) -> None:
    """A job that accepts no less than the backend can give is refused at open."""
    weak = [name for name in Limits.model_fields if backend.capabilities.enforcer(name) is Enforcer.NOBODY]
    expect(weak, "nothing is held by nobody here: this row belongs among what the subject lacks")
    try:
        await backend.open(programs.NOTHING.job(needs=Needs(enforced={weak[0]: Enforcer.GUEST})))
    except Refused:
        return
    raise NotConforming(f"nobody enforces {weak[0]}, and the job was accepted")


@one_backend
async def frame_round_trips(backend: Backend) -> None:
    """Frames of any size come back to their caller, timed by our clock; a stray print goes to the log."""
    replies: list[bytes] = []

    async def talk(channel: Channel) -> None:
        for payload in (b"", b"abc", bytes(range(256)) * 4096):
            reply = await channel.call(payload, 20)
            expect(reply.payload == payload[::-1] and reply.elapsed_s > 0, "another reply than was sent")
            replies.append(reply.payload)

    outcome = await run(backend, programs.ECHO, programs.SERVING, mode=Mode.RELAY, talk=talk)
    expect_ending(outcome, Ending.COMPLETED)
    expect(len(replies) == 3 and b"a stray print\n" in outcome.log_tail, outcome)


@one_backend
async def frame_out_of_turn(backend: Backend) -> None:
    """Answering before being asked is a typed ending."""

    async def talk(channel: Channel) -> None:
        await asyncio.sleep(1)
        await channel.call(b"?", 20)

    outcome = await run(backend, programs.BLURT, mode=Mode.RELAY, talk=talk)
    expect_ending(outcome, Ending.PROTOCOL)
