"""The files of deploy/ fit KubeRay, Ray, the shell, Docker, and the code; nothing here starts a cluster."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.deploy.files import DEPLOY, MANIFESTS, commands_of_shell, dstack, manifest, ray_up, scripts, skypilot
from tests.docs.commands import problems_of
from tests.house.tree import REPOSITORY

VALIDATOR = Draft202012Validator(
    json.loads(Path(__file__).with_name("kubernetes.schema.json").read_text(encoding="utf-8"))
)
VERSIONS = dict(
    line.split("==") for line in (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").split() if "==" in line
)
TEXTS = {
    str(file.relative_to(DEPLOY)): file.read_text(encoding="utf-8") for file in DEPLOY.rglob("*") if file.is_file()
}
SECTIONS = ("headGroupSpec", "rayVersion", "authOptions", "enableInTreeAutoscaling", "autoscalerOptions")


def _findings(linter: str, file: str) -> tuple[int, str]:
    command = [str(Path(sys.executable).with_name(linter)), str(DEPLOY / file)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return ended.returncode, ended.stdout


def _spec(name: str) -> Any:
    spec = manifest(name)["spec"]
    return spec.get("rayClusterSpec", spec)


def _pods(name: str) -> list[Any]:
    """The pods of a manifest's cluster, the head first."""
    spec = _spec(name)
    return [group["template"]["spec"] for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"])]


def test_there_are_files_to_check() -> None:
    assert MANIFESTS == ["raycluster.yaml", "rayjob.yaml", "volume.yaml"]
    assert {"ray_up.yaml", "slurm.sh", "skypilot.yaml", "search.dstack.yml", "Dockerfile"} < set(TEXTS)
    VALIDATOR.check_schema(VALIDATOR.schema)


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_have_only_fields_of_kubernetes_and_kuberay(name: str) -> None:
    """A misspelt field, which `kubectl apply` alone would find."""
    VALIDATOR.validate(manifest(name))


def _mappings(node: object, key: str = "") -> Iterator[dict[str, object]]:
    """All mappings whose keys are fields of Kubernetes, not names of the user's choice."""
    if isinstance(node, list):
        for each in node:
            yield from _mappings(each)
    elif isinstance(node, dict) and key not in ("rayStartParams", "nodeSelector", "limits", "requests"):
        yield node
        for name, each in node.items():
            yield from _mappings(each, name)


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_schema_is_closed_everywhere(name: str) -> None:
    """An object of the schema that allows any field: a misspelt one there would be found by no test."""
    whole = manifest(name)
    parts = list(_mappings(whole))
    assert len(parts) > 3
    for part in parts:
        part["misspelt"] = "field"
        assert not VALIDATOR.is_valid(whole)
        del part["misspelt"]
    assert VALIDATOR.is_valid(whole)


def test_the_job_has_the_machines_of_the_cluster() -> None:
    """A change of one manifest that is forgotten in the other; they differ only in the numbers of machines."""
    cluster, job = _spec("raycluster.yaml"), _spec("rayjob.yaml")
    assert {key: cluster[key] for key in SECTIONS} == {key: job[key] for key in SECTIONS}
    for spec in (cluster, job):
        for group in spec["workerGroupSpecs"]:
            assert group.pop("minReplicas") <= group.pop("maxReplicas")
    assert job["workerGroupSpecs"]
    assert [group for group in job["workerGroupSpecs"] if group not in cluster["workerGroupSpecs"]] == []


@pytest.mark.parametrize("name", ["raycluster.yaml", "rayjob.yaml"])
def test_all_machines_are_alike(name: str) -> None:
    """A machine without the volume or with another image: dice_ray refuses to run on such a cluster."""
    pods = _pods(name)
    volumes = manifest("volume.yaml")["metadata"]["name"]
    for pod in pods:
        (container,) = pod["containers"]
        assert (container["image"], container["env"]) == (pods[0]["containers"][0]["image"], _environment(name))
        mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        claimed = [
            volume["name"] for volume in pod["volumes"] if volume["persistentVolumeClaim"]["claimName"] == volumes
        ]
        assert [mounted[volume] for volume in claimed] == ["/shared"]
        assert pod["securityContext"]["runAsUser"] == 1000
    assert pods[0]["containers"][0]["image"].endswith(f"dice-ray:{_project()['version']}")
    shared = [
        each["value"] for each in _environment(name) if each["name"] in ("DICE_RAY_RUNS", "DICE_RAY_DATA", "HF_HOME")
    ]
    assert [Path(folder).parent for folder in shared] == [Path("/shared")] * 3


def _environment(name: str) -> Any:
    return _pods(name)[0]["containers"][0]["env"]


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


@pytest.mark.parametrize("name", ["raycluster.yaml", "rayjob.yaml"])
def test_a_cluster_has_a_token_and_no_address_outside(name: str) -> None:
    """A cluster on which anyone who reaches it can run code."""
    spec = _spec(name)
    assert spec["authOptions"] == {"mode": "token"}
    assert spec["headGroupSpec"]["serviceType"] == "ClusterIP"


def test_a_lost_head_is_resumed() -> None:
    """A job that is not started again, or whose sweep has a new name each time and so begins again."""
    job = manifest("rayjob.yaml")["spec"]
    assert job["backoffLimit"] > 0
    assert job["shutdownAfterJobFinishes"]
    assert " --name " in job["entrypoint"]


def test_a_job_for_kueue_has_only_fields_of_kubernetes_and_kuberay() -> None:
    """A line that is a comment until it is needed, and misspelt or in the wrong place."""
    file, field = DEPLOY / "kuberay" / "rayjob.yaml", r"^( *)# ((labels|annotations|submissionMode|restartPolicy): )"
    text, number = re.subn(field, r"\1\2", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    job = yaml.safe_load(text)
    VALIDATOR.validate(job)
    assert number == 4
    assert job["metadata"]["annotations"] == {"kueue.x-k8s.io/elastic-job": "true"}
    assert job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["restartPolicy"] == "Never"


def test_a_task_of_skypilot_keeps_away_from_the_ray_that_skypilot_runs() -> None:
    """Ray on SkyPilot's port, a driver that joins SkyPilot's Ray, and a `ray stop` that ends it with the job."""
    task = skypilot()
    keys = {"name", "num_nodes", "resources", "workdir", "envs", "secrets", "setup", "run"}  # of SkyPilot 0.14
    assert set(task) == keys
    assert set(task["resources"]) == {"accelerators", "use_spot"}
    commands = [" ".join(command) for command in commands_of_shell(task["run"])]
    assert [command for command in commands if "auto" in command or "stop" in command or "symmetric" in command] == []
    assert "ray start --head --port 6379" in commands
    assert task["secrets"] == {"RAY_AUTH_TOKEN": None}


def test_a_task_of_dstack_ends_with_its_head_and_is_started_again() -> None:
    """A task that waits for its workers, or that nobody starts again when a machine is taken away."""
    task = dstack()
    keys = {"type", "name", "nodes", "image", "env", "commands", "resources", "spot_policy", "retry", "stop_criteria"}
    assert set(task) == keys  # of dstack 0.22
    assert "interruption" in task["retry"]["on_events"]
    assert task["stop_criteria"] == "master-done"
    assert task["image"].endswith(f"dice-ray:{_project()['version']}")


@pytest.mark.parametrize("task", [skypilot, dstack])
def test_a_task_that_is_preempted_finds_its_sweep_again(task: Callable[[], Any]) -> None:
    """A sweep with a new name each time, or whose ledger and checkpoints lie on a machine that is taken away."""
    variables = task().get("envs") or dict(line.split("=") for line in task()["env"] if "=" in line)
    assert variables["DICE_RAY_RUNS"].startswith("s3://")
    assert variables["RAY_AUTH_MODE"] == "token"
    (command,) = [words for words in commands_of_shell(task().get("run") or task()["commands"][0]) if "tune" in words]
    assert "--name" in command


def test_versions_of_ray_are_that_of_the_constraints() -> None:
    """A manifest that was forgotten when Ray was raised."""
    assert {_spec(name)["rayVersion"] for name in ("raycluster.yaml", "rayjob.yaml")} == {VERSIONS["ray"]}


def test_ray_accepts_the_configuration_of_its_launcher() -> None:
    """A field that `ray up` refuses, a head that trains, and machines that are not spot machines."""
    from ray.autoscaler._private.util import prepare_config, validate_config  # what `ray up` calls (Ray 2.60)

    config = prepare_config(ray_up())
    validate_config(config)
    head, spot = config["available_node_types"]["head"], config["available_node_types"]["gpu_spot"]
    assert head["resources"] == {"CPU": 0}
    assert "InstanceMarketOptions" not in head["node_config"]
    assert spot["node_config"]["InstanceMarketOptions"] == {"MarketType": "spot"}
    assert any("RAY_AUTH_MODE=token" in line for line in config["setup_commands"])


@pytest.mark.parametrize(
    ("file", "number"),
    [("rayjob.yaml", 1), ("ray_up.yaml", 4), ("slurm.sh", 1), ("skypilot.yaml", 3), ("search.dstack.yml", 1)],
)
def test_commands_exist_with_their_options(file: str, number: int) -> None:
    """An option, preset or setting that no longer exists, or that Ray does not know."""
    commands = list(commands_of_shell(scripts()[file]))
    assert len(commands) == number
    assert [f"{' '.join(words)}: {problem}" for words in commands for problem in problems_of(words)] == []


def test_environment_variables_exist() -> None:
    """A variable of dice_ray that no code reads."""
    files = [*(REPOSITORY / "dice_ray").rglob("*.py"), *(REPOSITORY / "search_spaces").rglob("*.yaml")]
    code = "".join(file.read_text(encoding="utf-8") for file in files)
    known = set(re.findall(r'(?:"|: \$)(DICE_RAY_\w+)', code))  # read by name, or in the path of a preset
    named = {name for text in TEXTS.values() for name in re.findall(r"\bDICE_RAY_\w+", text)}
    assert named
    assert named - known == set()


def test_shellcheck_finds_nothing() -> None:
    """An unquoted variable, a command whose failure is lost."""
    assert _findings("shellcheck", "slurm.sh") == (0, "")


def test_a_slurm_job_keeps_its_token_to_itself_and_is_started_again() -> None:
    """A token in the job's output, and a job that is not requeued when its time is over, or is when it is cancelled."""
    script = TEXTS["slurm.sh"]
    assert re.findall(r".*RAY_AUTH_TOKEN.*", script) == [
        """RAY_AUTH_TOKEN="$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')\"""",
        "export RAY_AUTH_TOKEN",
    ]
    assert "set -x" not in script
    options = re.findall(r"^#SBATCH --(\S+)", script, re.MULTILINE)
    assert {"requeue", "open-mode=append", "signal=B:USR1@60", "ntasks-per-node=1", "exclusive"} < set(options)
    assert """trap 'scontrol requeue "$SLURM_JOB_ID"' USR1""" in script


def test_hadolint_finds_nothing() -> None:
    """An instruction that Docker does not know, a cache in the image, an image that runs as root."""
    assert _findings("hadolint", "Dockerfile") == (0, "")
    assert re.findall(r"^USER (.*)$", TEXTS["Dockerfile"], re.MULTILINE) == ["1000"]


def test_an_image_is_built_from_what_there_is() -> None:
    """A file that is copied and does not exist, a package that is left out, a version that is not pinned."""
    dockerfile = TEXTS["Dockerfile"].replace("\\\n", " ")
    copied = [word for line in re.findall(r"^COPY (.*) \S+$", dockerfile, re.MULTILINE) for word in line.split()]
    assert [file for file in copied if not (REPOSITORY / file).exists()] == []
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    read = [project["project"]["readme"], *project["project"]["license-files"], "pyproject.toml", "constraints.txt"]
    assert {*packages, *read} == set(copied)
    installs = re.findall(r"pip install .*", dockerfile)
    assert len(installs) == 2
    assert [line for line in installs if "--constraint constraints.txt" not in line] == []
