"""`uses: little-loops/ll-loop/docker`: the image, and the command with which the runner starts it."""

import dataclasses
import os
import shutil
import sys
import uuid

from engine import LABEL, ROOT, Engine, NoEngine

sys.path.insert(0, str(ROOT / "tests/packaging"))
from runner import FACTS  # noqa: E402

IMAGE = "ll-loop-test/ll-loop:latest"


def build_image(engine, program, base):
    """The image with this program, from the context as the release workflow has it: what .dockerignore lets in."""
    context = engine.directory / "context"
    arch = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    (context / "dist" / arch).mkdir(parents=True)
    shutil.copy(program, context / "dist" / arch / "ll-loop")
    shutil.copy(ROOT / ".dockerignore", context)
    shutil.copy(ROOT / "Dockerfile", context)
    engine.build(context, IMAGE, "--build-arg", "BINARY=prebuilt", "--build-arg", f"BASE_IMAGE={base}")


def engine_with_image(clean_up):
    """An engine that has the image of the program, until `clean_up` ends it; and the base of the image."""
    program = os.environ.get("LL_LOOP_BIN")
    if not program:
        raise RuntimeError("LL_LOOP_BIN is not set: run `tests/run container`, which builds the program")
    try:
        engine = Engine()
        clean_up(engine.close)
        base = engine.base_image()
    except NoEngine as reason:
        raise RuntimeError(f"THE CONTAINER WAS NOT TESTED: {reason}") from reason
    build_image(engine, program, base)
    return engine, base


@dataclasses.dataclass
class DockerRun:
    name: str
    command: list
    environment: dict
    """Of the client: the command has names alone."""
    files: dict


def docker_run(engine, runner, inputs, arguments, env=None, network="none", workspace_options=""):
    """The `docker run` of the runner (ContainerActionHandler, DockerCommandManager), with its mounts and paths."""
    temp, commands = runner.temp, runner.commands
    (temp / "_github_home").mkdir(exist_ok=True)
    runner.give(temp / "_github_home")
    files = {
        name: runner.new_file(commands, "", "")
        for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
    }
    environment = {
        **{f"INPUT_{name.upper()}": value for name, value in inputs.items()},
        "HOME": "/github/home",
        **FACTS,
        **{name: f"/github/file_commands/{path.name}" for name, path in files.items()},
        "GITHUB_EVENT_PATH": "/github/workflow/event.json",
        "GITHUB_WORKSPACE": "/github/workspace",
        "RUNNER_TEMP": "/github/runner_temp",
        "RUNNER_TOOL_CACHE": "/opt/hostedtoolcache",
        "ACTIONS_RUNTIME_URL": "https://pipelines.actions.githubusercontent.com/x/",
        "ACTIONS_RUNTIME_TOKEN": "the-runtime-token",
        "ACTIONS_RESULTS_URL": "https://results-receiver.actions.githubusercontent.com/",
        **(env or {}),
    }
    name = f"ll-loop-test-{uuid.uuid4().hex[:12]}"
    # By name alone, with the value in the environment of the client.
    variables = [word for variable in environment for word in ("-e", variable)]
    mounts = {
        engine.socket: "/var/run/docker.sock",
        temp: "/github/runner_temp",
        temp / "_github_home": "/github/home",
        temp / "_github_workflow": "/github/workflow",
        commands: "/github/file_commands",
        runner.workspace: f"/github/workspace{workspace_options}",
    }
    command = [
        "run", "--name", name, "--label", LABEL, "--workdir", "/github/workspace", "--rm", *variables,
        "--network", network, *[word for path, target in mounts.items() for word in ("-v", f"{path}:{target}")],
        IMAGE, *arguments,
    ]  # fmt: skip
    return DockerRun(name, command, {**engine.env, **environment}, files)
