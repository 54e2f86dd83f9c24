"""Where SkyPilot can rent, and what a machine is there: the boundary matrix, as data.

The machine is the boundary, and our own hardened container runs inside it. So a place is refused where the machine is
none (a container or a pod on a host that is shared), where SkyPilot copies the account's own keys to it with no switch
against that, or where nothing ends it by itself, or nothing without those keys. All of it is checked before anything is
created.
"""

from dataclasses import dataclass
from enum import StrEnum

from sandbox.errors import Refused


class Kind(StrEnum):
    """What one gets when one asks for a machine."""

    VM = "virtual machine"
    NODE = "shared node"
    POD = "pod"
    CONTAINER = "container"


@dataclass(frozen=True, slots=True)
class Place:
    """`refused` is why nothing is rented there; '' where it is allowed, with `caveats` that people are told."""

    kind: Kind
    refused: str = ""
    caveats: tuple[str, ...] = ()


_IDENTITY = (
    "the machine has an identity of its own at the cloud, by which it ends itself; "
    "who breaks out of the chamber has it too"
)
_KEYS = "SkyPilot copies the account's API key to the machine there, and has no switch against it"
_NO_END = "SkyPilot cannot have a machine end itself there, so nothing would end one that we lost"
_ENDS_BY_KEY = (
    "SkyPilot has a machine end itself there with the account's own key, which no machine of ours gets, "
    "so nothing would end one that we lost"
)
_IN_A_CONTAINER = "the machine is a container on a host shared with strangers, with no engine of its own inside"
_IN_A_POD = (
    "the machine is a pod on a node's shared kernel; an engine inside needs a privileged pod, which is root on the node"
)
_SHARED_NODE = (
    "the node is shared with other users' jobs: the boundary is the container, as on an engine of one's own",
    "the node's engine must be open to the job's user, which makes that user root on the node",
    "the absolute end is Slurm's time limit; containers are the engine's, and are ended by a timer beside the job",
)

_CLOUD_VM = Place(Kind.VM, caveats=(_IDENTITY,))
_VM_ENDED_BY_KEY = Place(Kind.VM, refused=_ENDS_BY_KEY)
_VM_WITH_KEYS = Place(Kind.VM, refused=_KEYS)

PLACES: dict[str, Place] = {
    "aws": _CLOUD_VM,
    "gcp": _CLOUD_VM,
    "slurm": Place(Kind.NODE, caveats=_SHARED_NODE),
    "kubernetes": Place(Kind.POD, refused=_IN_A_POD),
    "ssh": Place(Kind.POD, refused=_IN_A_POD),
    "runpod": Place(Kind.CONTAINER, refused=_IN_A_CONTAINER),
    "vast": Place(Kind.CONTAINER, refused=_IN_A_CONTAINER),
    "yotta": Place(Kind.CONTAINER, refused=_IN_A_CONTAINER),
    "hyperbolic": Place(Kind.VM, refused=_NO_END),
    "primeintellect": Place(Kind.VM, refused=_NO_END),
    "verda": Place(Kind.VM, refused=_NO_END),
    "azure": _VM_ENDED_BY_KEY,
    "nebius": _VM_ENDED_BY_KEY,
    "oci": _VM_ENDED_BY_KEY,
    "cudo": _VM_WITH_KEYS,
    "do": _VM_WITH_KEYS,
    "fluidstack": _VM_WITH_KEYS,
    "ibm": _VM_WITH_KEYS,
    "lambda": _VM_WITH_KEYS,
    "mithril": _VM_WITH_KEYS,
    "paperspace": _VM_WITH_KEYS,
    "scp": _VM_WITH_KEYS,
    "seeweb": _VM_WITH_KEYS,
    "shadeform": _VM_WITH_KEYS,
    "vsphere": _VM_WITH_KEYS,
}
_ALIASES = {"k8s": "kubernetes"}
# Clouds whose settings know `remote_identity: NO_UPLOAD`. All of them are told so, wherever the machine is rented:
# SkyPilot copies the keys of every cloud to the machines of each.
SWITCHABLE = ("aws", "azure", "gcp", "kubernetes", "nebius", "oci", "slurm", "ssh", "vast")

WARM_CAVEAT = "machines are used for many trials: who breaks out of one chamber meets the trials that come after"
LOST_WORDS = (
    "the machine reports how a trial ended; who breaks out of the chamber can forge that, as the chamber itself can"
)


def cloud_of(infra: str) -> str:
    """`aws` of `aws/us-east-1`, `kubernetes` of `k8s/context`."""
    name = infra.partition("/")[0].lower()
    return _ALIASES.get(name, name)


def admitted(infra: str) -> Place:
    """The place that is meant. Raises Refused where a machine is no boundary."""
    cloud = cloud_of(infra)
    place = PLACES.get(cloud)
    if place is None:
        allowed = ", ".join(name for name, known in PLACES.items() if not known.refused)
        raise Refused(f"the place {infra!r} is not known here; these are: {allowed}")
    if place.refused:
        raise Refused(
            f"no chamber is rented at {cloud}: {place.refused} (docs/skypilot.md says which places are allowed)"
        )
    return place


def refuse_container_image(image: str) -> None:
    """SkyPilot would make such an image the machine: a container with the host's network and added capabilities."""
    if image.startswith("docker:"):
        raise Refused(
            f"the image {image} is refused: with docker: SkyPilot runs the machine itself as a container, with the "
            "host's network and added capabilities; name the image without docker:, it is shipped from the local engine"
        )
