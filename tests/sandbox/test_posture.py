"""What was asked of an engine is compared with what it made of it, field by field."""

import copy
import dataclasses
import errno
import itertools
import json
from typing import Any

import pytest

from sandbox import Input, Limits
from sandbox.posture import (
    CHAMBER_UIDS,
    FULL,
    Posture,
    container_config,
    differences,
    image_objections,
    inside_differences,
    overlay_layers,
    seccomp_profile,
)

LIMITS = Limits(gpu="A100:2")
MOUNTS = [("/somewhere", Input(name="data", digest="0" * 64))]
GPUS = ("GPU-1", "GPU-2")
WANTED: dict[str, Any] = container_config(FULL, LIMITS, "runc", "boot", "image", MOUNTS, gpus=GPUS)
NOTHING: list[object] = [None, "", [], {}, 0, False]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every single value in a request."""
    if isinstance(value, dict) and value:
        return [leaf for key, item in value.items() for leaf in leaves(item, (*path, key))]
    if isinstance(value, list) and value:
        return [leaf for index, item in enumerate(value) for leaf in leaves(item, (*path, index))]
    return [path]


def replaced(path: tuple[Any, ...], value: object) -> dict[str, Any]:
    report = copy.deepcopy(WANTED)
    place: Any = report
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return report


def test_each_changed_value_is_reported() -> None:
    """An engine that did as asked is believed; whichever value it changed, the difference names its field."""
    assert differences(WANTED, copy.deepcopy(WANTED)) == []
    for path in leaves(WANTED):
        named = f"HostConfig.{path[1]}" if path[0] == "HostConfig" else str(path[0])
        found = differences(WANTED, replaced(path, "something else"))
        assert [line.startswith(named) for line in found] == [True], path


def test_each_missing_field_is_reported_unless_it_was_empty() -> None:
    """A field that the engine left out counts as empty, which is a difference where something was asked."""
    for key, asked in WANTED["HostConfig"].items():
        report = copy.deepcopy(WANTED)
        del report["HostConfig"][key]
        assert bool(differences(WANTED, report)) != (asked in NOTHING), key


def test_nothing_is_said_in_many_ways() -> None:
    """None, '', [], {}, 0 and False are alike, and an engine may choose. What was asked for and is gone is a
    difference, and so is what was not asked for and is there.
    """
    for asked, reported in itertools.product(NOTHING, NOTHING):
        assert differences({"a": asked}, {"a": reported}) == differences({"a": asked}, {}) == []
    for nothing, something in itertools.product(NOTHING, ("x", ["x"], {"x": 1}, 1, True)):
        assert differences({"a": something}, {"a": nothing})
        assert differences({"a": nothing}, {"a": something})


@pytest.mark.parametrize("added", [True, 1, "host", ["x"], {"x": 1}])
def test_what_the_engine_added_is_reported(added: object) -> None:
    """A field that nobody asked for is a difference at any depth: beside ours, within ours, within a list of ours."""
    report = copy.deepcopy(WANTED)
    report["HostConfig"]["Surprise"] = added
    assert differences(WANTED, report) == ["HostConfig.Surprise: not asked for, the engine added it"]
    report = copy.deepcopy(WANTED)
    report["HostConfig"]["LogConfig"]["Surprise"] = added
    assert differences(WANTED, report) == ["HostConfig.LogConfig.Surprise: not asked for, the engine added it"]
    report = copy.deepcopy(WANTED)
    report["HostConfig"]["Mounts"][0]["Surprise"] = added
    assert len(differences(WANTED, report)) == 1


def test_fields_that_an_engine_knows_besides() -> None:
    """Empty ones do no harm, and the two that engines fill in by themselves are known to be harmless."""
    for empty in (*NOTHING, [""], [0, 0]):
        report = copy.deepcopy(WANTED)
        report["HostConfig"] |= {"Surprise": empty, "ShmSize": 67_108_864, "ConsoleSize": [24, 80]}
        assert differences(WANTED, report) == []


def test_security_options_are_a_set() -> None:
    """A security option that is said twice, or elsewhere in the list, is no difference; one more or less is."""
    asked = WANTED["HostConfig"]["SecurityOpt"]
    for options in ([*asked, asked[0]], asked[::-1]):
        assert differences(WANTED, replaced(("HostConfig", "SecurityOpt"), options)) == []
    for options in (asked[1:], [*asked, "apparmor=unconfined"]):
        assert len(differences(WANTED, replaced(("HostConfig", "SecurityOpt"), options))) == 1


def test_long_values_are_shortened() -> None:
    """A difference is one line that a person can read, even of a seccomp profile."""
    (line,) = differences(WANTED, replaced(("HostConfig", "SecurityOpt"), ["x" * 100_000]))
    assert len(line) < 250


@pytest.mark.parametrize("flag", [field.name for field in dataclasses.fields(Posture)])
def test_each_flag_changes_the_request(flag: str) -> None:
    """A flag that is switched off shows in the request, and as a difference from the full one."""
    posture = dataclasses.replace(FULL, **{flag: False})
    assert differences(WANTED, container_config(posture, LIMITS, "runc", "boot", "image", MOUNTS, gpus=GPUS))


def test_each_limit_of_the_engine_is_in_the_request() -> None:
    """Every limit that the engine holds is asked of it; memory and swap together are as much as memory: no swap."""
    plain = container_config(FULL, Limits(), "runc", "", "")
    sizes: dict[str, Any] = {"memory": "1GiB", "work_bytes": "2MiB"}
    for name in ("memory", "cpus", "pids", "open_files", "work_bytes", "work_inodes"):
        assert container_config(FULL, Limits(**{name: sizes.get(name, 99)}), "runc", "", "") != plain, name
    assert WANTED["HostConfig"]["Memory"] == WANTED["HostConfig"]["MemorySwap"] == LIMITS.memory


def test_gvisor_gets_room_for_its_own_threads() -> None:
    """runsc has no limit on inodes, and needs processes of its own beside the guest's."""
    host: Any = container_config(FULL, LIMITS, "runsc", "", "")["HostConfig"]
    assert "nr_inodes" not in json.dumps(host["Tmpfs"])
    assert "nr_inodes" in json.dumps(WANTED["HostConfig"]["Tmpfs"])
    assert host["PidsLimit"] > LIMITS.pids == WANTED["HostConfig"]["PidsLimit"]


def test_inputs_are_read_only() -> None:
    """Whether as an overlay, which has no layer that could be written, or as a mount that does not travel."""
    (mount,) = WANTED["HostConfig"]["Mounts"]
    assert (mount["Type"], mount["Target"]) == ("volume", "/inputs/data")
    options = mount["VolumeOptions"]["DriverConfig"]["Options"]
    assert (options["type"], options["o"]) == ("overlay", "ro,lowerdir=/somewhere:/.empty")
    weak: Any = container_config(dataclasses.replace(FULL, own_files=False), LIMITS, "runc", "", "", MOUNTS)
    (mount,) = weak["HostConfig"]["Mounts"]
    assert (mount["Type"], mount["ReadOnly"], mount["Target"]) == ("bind", True, "/inputs/data")
    assert mount["BindOptions"]["Propagation"] == "rprivate"


def test_names_that_an_overlay_reads_otherwise() -> None:
    assert overlay_layers("/a:b,c\\d", "/e") == r"lowerdir=/a\:b\,c\\d:/e"


def test_seccomp_profile_does_not_allow() -> None:
    """Our profile denies what it does not name, and does not name what widens the kernel's surface."""
    profile = json.loads(seccomp_profile())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    allowed = {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    assert "read" in allowed
    wide = """
        ptrace process_vm_readv process_vm_writev io_uring_setup io_uring_enter io_uring_register bpf perf_event_open
        keyctl add_key request_key userfaultfd kexec_load setns mount init_module finit_module open_by_handle_at
        pivot_root reboot swapon
    """
    assert allowed.isdisjoint(wide.split())


def answered(call: str, place: int, value: int) -> int | None:
    """What the profile answers to a call with this argument, all others 0: None where the kernel gets it."""
    profile = json.loads(seccomp_profile())
    for rule in profile["syscalls"]:
        if call not in rule["names"]:
            continue
        matches = True
        for wanted in rule.get("args", ()):
            given = value if wanted["index"] == place else 0
            if wanted["op"] == "SCMP_CMP_MASKED_EQ":
                matches &= given & wanted["value"] == wanted["valueTwo"]
            else:
                matches &= given == wanted["value"]
        if matches:
            return None if rule["action"] == "SCMP_ACT_ALLOW" else int(rule.get("errnoRet", errno.EPERM))
    return errno.EPERM


HIGH = 1 << 32  # the kernel takes these arguments for 32 bits; a filter that compares 64 must not be passed by the rest


@pytest.mark.parametrize(
    ("call", "place", "values", "answer"),
    [
        pytest.param("fadvise64", 3, (3, 4), 0, id="fadvise will need, do not need"),
        pytest.param("fadvise64", 3, (HIGH + 3, HIGH + 4, 6), errno.EPERM, id="fadvise unknown"),
        pytest.param("fadvise64", 3, (0, 1, 2, 5), None, id="fadvise of the own file"),
        pytest.param("readahead", 1, (0,), 0, id="readahead"),
        pytest.param("mincore", 1, (0,), errno.ENOSYS, id="mincore"),
        pytest.param("cachestat", 1, (0,), errno.ENOSYS, id="cachestat"),
        pytest.param("madvise", 2, (3, 20, 21), 0, id="madvise will need, cold, page out"),
        pytest.param("madvise", 2, (12, 25), errno.EINVAL, id="madvise mergeable, collapse"),
        pytest.param("madvise", 2, (HIGH + 3, HIGH + 12, HIGH + 21, 100), errno.EPERM, id="madvise unknown"),
        pytest.param("madvise", 2, (0, 4, 8, 14, 16, 18, 102), None, id="madvise of allocators"),
        pytest.param("preadv2", 5, (8, 0x80, HIGH + 8, 0x8A), errno.EOPNOTSUPP, id="preadv2 no wait, do not cache"),
        pytest.param("preadv2", 5, (0, 1, 2), None, id="preadv2"),
        pytest.param("prctl", 0, (67, HIGH + 67), errno.EINVAL, id="prctl memory merge"),
        pytest.param("inotify_init", 0, (0,), errno.EMFILE, id="inotify_init"),
        pytest.param("inotify_init1", 0, (0, 0x800), errno.EMFILE, id="inotify_init1"),
        pytest.param("fcntl", 1, (1026, HIGH + 1026), errno.EINVAL, id="fcntl notify"),
        pytest.param("fcntl", 1, (*range(40), 1024, 1025, *range(1027, 1048)), None, id="fcntl"),
        pytest.param("prctl", 0, (1, 15, 38, 66, 68, 0x53564D41), None, id="prctl"),
    ],
)
def test_t83_t97_answers_of_the_profile(call: str, place: int, values: tuple[int, ...], answer: int | None) -> None:
    """What reaches a neighbour through a file that both read gets the answer that programs live with, all else the
    kernel's.
    """
    assert {value: answered(call, place, value) for value in values} == dict.fromkeys(values, answer)


FACTS = {
    "routes": "0",
    "uid": " ".join([str(CHAMBER_UIDS.start)] * 4),
    "capabilities": "0000000000000000",
    "no_new_privileges": "1",
    "seccomp": "2",
}


def test_posture_inside_as_asked() -> None:
    """A chamber that sees what was asked for has no differences, more facts do no harm, and a flag that was switched
    off on purpose is not missed.
    """
    assert inside_differences(FULL, "runc", {**FACTS, "cpu": "fast"}, CHAMBER_UIDS.start) == []
    for flag in ("user", "drop_capabilities", "network", "no_new_privileges", "seccomp"):
        weak = dataclasses.replace(FULL, **{flag: False})
        assert len(inside_differences(weak, "runc", {}, CHAMBER_UIDS.start)) == 4


@pytest.mark.parametrize("fact", sorted(FACTS))
def test_posture_inside_otherwise(fact: str) -> None:
    """Whichever fact is another or missing is reported; gVisor does not report the last two."""
    for facts in ({**FACTS, fact: "another"}, {name: value for name, value in FACTS.items() if name != fact}):
        assert [line.split(":")[0] for line in inside_differences(FULL, "runc", facts, CHAMBER_UIDS.start)] == [fact]
        unknown_to_gvisor = fact in ("no_new_privileges", "seccomp")
        assert bool(inside_differences(FULL, "runsc", facts, CHAMBER_UIDS.start)) != unknown_to_gvisor


@pytest.mark.parametrize("loopback", [True, False])
def test_network_is_off(loopback: bool) -> None:
    """No chamber is on a network; only one with a loopback has a network of that name made for it."""
    config: dict[str, Any] = container_config(FULL, LIMITS, "runc", "boot", "image", loopback=loopback)
    assert (config["NetworkDisabled"], config["HostConfig"]["NetworkMode"]) == (not loopback, "none")


def test_images_that_could_preload_code() -> None:
    """An image with a variable that is not known to be harmless is refused by the variable's name."""
    paths = "LD_PRELOAD=/evil.so LD_LIBRARY_PATH=/evil LD_AUDIT=x PYTHONPATH=/evil PYTHONSTARTUP=x BASH_ENV=/evil"
    for variable in f"{paths} ENV=/evil PERL5LIB=x NODE_OPTIONS=x GCONV_PATH=x IFS=x path=/x X =x".split():
        (objection,) = image_objections({"Env": ["PATH=/usr/bin", variable]})
        assert variable.partition("=")[0] in objection


def test_images() -> None:
    """One with nothing but the usual has no objections; a volume of it would be writable, and not ours."""
    for usual in ({}, {"Env": None, "Volumes": None}, {"Env": ["PATH=/bin", "LANG=C.UTF-8", "NV_X=1"]}):
        assert image_objections(usual) == []
    assert image_objections({"Volumes": {"/data": {}}}) == ["it declares the writable volume /data"]


def test_gpus_are_asked_for_by_id() -> None:
    """Never by number, which engines answer with the first ones for everybody; and for computing only. A chamber
    without a GPU has no device of one, and does not learn what the host has.
    """
    (request,) = WANTED["HostConfig"]["DeviceRequests"]
    assert (request["Driver"], request["Count"], request["DeviceIDs"]) == ("nvidia", 0, list(GPUS))
    assert request["Capabilities"] == [["gpu", "compute", "utility"], ["gpu"]]
    without: Any = container_config(FULL, LIMITS, "runc", "", "")["HostConfig"]
    assert without["DeviceRequests"] == []
    masked = "/proc/driver/nvidia"
    assert (masked in without["MaskedPaths"], masked in WANTED["HostConfig"]["MaskedPaths"]) == (True, False)
