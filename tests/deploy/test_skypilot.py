"""SkyPilot's templates: taken by SkyPilot itself, and equal to what our backend launches and forbids."""

from sandbox.backends.skypilot.order import task_of
from sandbox.backends.skypilot.places import SWITCHABLE
from sandbox.backends.skypilot.provisioner import Ask, Wanted
from sandbox.job import Gpu
from tests.deploy.templates import DEPLOY, load

MACHINE = DEPLOY / "skypilot" / "machine.yaml"
CONFIG = DEPLOY / "skypilot" / "config.yaml"
NEW_YEAR = 1_798_761_600


def test_machine_is_what_we_launch() -> None:
    """The page shows the very task that the backend gives to SkyPilot."""
    wanted = Wanted(Ask(2, 5, Gpu.parse("L4:1")), idle_s=600.0, ends=NEW_YEAR, most_usd_per_hour=1.5)
    assert load(MACHINE) == task_of("aws/us-east-1", wanted, now=NEW_YEAR - 3600.0)


def test_machine_is_a_task() -> None:
    """SkyPilot's own reader takes it, and reads what we mean."""
    from sky import task as sky_task

    task = sky_task.Task.from_yaml(str(MACHINE))
    [resources] = task.resources
    assert resources.accelerators == {"L4": 1}
    autostop = resources.autostop_config
    assert (autostop.enabled, autostop.down, autostop.idle_minutes) == (True, True, 10)
    assert not any((task.workdir, task.file_mounts, task.envs, task.secrets))


def test_config_is_one() -> None:
    """SkyPilot's schema of its settings takes it."""
    from sky.utils import common_utils, schemas

    common_utils.validate_schema(load(CONFIG), schemas.get_config_schema(), "config.yaml: ")


def test_config_uploads_nothing() -> None:
    """Every cloud that has the switch is told so, as the backend does."""
    config = load(CONFIG)
    assert {cloud: config[cloud]["remote_identity"] for cloud in SWITCHABLE} == dict.fromkeys(SWITCHABLE, "NO_UPLOAD")
    assert set(config) == {*SWITCHABLE, "allowed_clouds"}
