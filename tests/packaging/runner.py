"""GitHub's runner, as far as a composite action can tell.

tests/act runs the actions and workflows on act, which is a runner that others wrote. What is played here is what act does
not do as GitHub does:

- how a step ends: GitHub sends SIGINT, then SIGTERM, and `always()` steps follow; act kills one process;
- the environment: on GitHub no `run` step gets the token of the artifact service, on act every one does;
- artifacts: a name is taken once, and `actions/upload-artifact` works;
- tokens that may do what `permissions` say, and read-only ones for forks;
- several runs: each with its number and attempts, dispatches, nights, `workflow_run`, `concurrency`;
- the user of the runner, `HOME`, tool cache and file commands, with the values they have there.

It executes the steps that stand in an action.yml, so a test of the action cannot drift from the file. What it
does follows the runner: a `run` text goes to a file of its own, the step's `shell` is the command line with `{0}`
for that file, inputs reach a composite only through expressions, each step has its own output file, and
conditions are asked step by step. A step with `uses` is not executed but recorded, unless `perform` is overridden.
"""

import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import yaml

from expression import Strict, expand, holds

ROOT = Path(__file__).resolve().parents[2]

# GITHUB_TOKEN is not among them: the runner gives it to nobody.
FACTS = {
    "CI": "true",
    "GITHUB_ACTIONS": "true",
    "GITHUB_ACTOR": "octocat",
    "GITHUB_API_URL": "https://api.github.com",
    "GITHUB_EVENT_NAME": "push",
    "GITHUB_JOB": "test",
    "GITHUB_REF": "refs/heads/main",
    "GITHUB_REPOSITORY": "octocat/project",
    "GITHUB_RUN_ATTEMPT": "1",
    "GITHUB_RUN_ID": "4711",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_SHA": "0123456789012345678901234567890123456789",
    "GITHUB_WORKFLOW": "ci",
    "RUNNER_ARCH": "X64",
    "RUNNER_OS": "Linux",
}


# The runner gives the token to an action only where the action asks for it in an expression.
TOKEN = "ghs_of_the_job"

# The command lines of shells that are named.
SHELLS = {"bash": "bash --noprofile --norc -e -o pipefail {0}", "sh": "sh -e {0}"}


class Step:
    """What became of a step."""

    def __init__(self, code, log, files):
        self.code = code
        self.log = log
        self.files = files
        self.outputs = read_outputs(files["GITHUB_OUTPUT"])


class Result:
    """What became of the action."""

    def __init__(self):
        self.steps = {}
        self.outcomes = {}
        self.uses = []
        self.outputs = {}
        self.code = 0

    @property
    def log(self):
        return "".join(step.log for step in self.steps.values())


class Runner:
    """A work directory laid out as the runner's, in which actions are executed."""

    def __init__(self, directory, owner=None):
        self.work = Path(directory) / "_work"
        self.temp = self.work / "_temp"
        self.workspace = self.work / "project" / "project"
        self.tools = Path(directory) / "_tool"
        self.commands = self.temp / "_runner_file_commands"
        self.event = self.temp / "_github_workflow" / "event.json"
        self.owner = owner
        self.outcome_of_uses = "success"
        self.matrix = None
        # The job was cancelled.
        self.is_cancelled = False
        # What steps wrote to GITHUB_ENV and GITHUB_PATH, for those after them.
        self.exported, self.paths = {}, []
        for path in (self.workspace, self.tools, self.commands, self.event.parent):
            path.mkdir(parents=True)
        self.event.write_text("{}")
        self.give(directory)

    def give(self, path):
        """Makes everything below `path` belong to the runner's user, where that is another than ours."""
        if self.owner is not None:
            subprocess.run(["chown", "-R", f"{self.owner}:{self.owner}", str(path)], check=True)

    def run(self, action, inputs=None, env=None, during=None):
        """Executes the composite in the directory `action`. `during` is called with the process of each step."""
        action = Path(action)
        definition = yaml.safe_load((action / "action.yml").read_text())
        assert definition["runs"]["using"] == "composite"
        github = {"token": TOKEN, "run_id": (env or {}).get("GITHUB_RUN_ID", FACTS["GITHUB_RUN_ID"])}
        given = with_defaults(definition, inputs or {}, {"github": github, "matrix": self.matrix})
        ids = [step.get("id", f"__{number}") for number, step in enumerate(definition["runs"]["steps"])]
        states = Strict({step_id: {"outcome": "", "conclusion": "", "outputs": {}} for step_id in ids})
        known = {"inputs": Strict(given), "steps": states, "github": github, "matrix": self.matrix}
        result = Result()
        for step_id, step in zip(ids, definition["runs"]["steps"]):
            state, failed = states[step_id], result.code != 0
            if not holds(step.get("if", "success()"), known, not failed, self.is_cancelled):
                state["outcome"] = state["conclusion"] = result.outcomes[step_id] = "skipped"
                continue
            if "uses" in step:
                arguments = {k: expand(v, known) for k, v in step.get("with", {}).items()}
                result.uses.append((step["uses"], arguments))
                state["outcome"] = self.perform(step["uses"], arguments)
                if state["outcome"] == "success" and "upload-artifact" in step["uses"]:
                    state["outputs"] = {"artifact-id": "1", "artifact-url": "https://github.com/o/r/actions/runs/1/artifacts/1"}
            else:
                done = self.execute(action, step_id, step, known, env or {}, during)
                result.steps[step_id] = done
                state["outputs"] = done.outputs
                state["outcome"] = "success" if done.code == 0 else "failure"
            is_forgiven = state["outcome"] == "success" or step.get("continue-on-error")
            state["conclusion"] = "success" if is_forgiven else "failure"
            result.outcomes[step_id] = state["outcome"]
            if not is_forgiven and not failed:
                result.code = result.steps[step_id].code if step_id in result.steps else 1
        result.outputs = {
            name: expand(output["value"], known) for name, output in definition.get("outputs", {}).items()
        }
        return result

    def perform(self, uses, arguments):
        """Does what a step with `uses` does, and returns its outcome."""
        return self.outcome_of_uses

    def execute(self, action, step_id, step, known, env, during):
        script = self.new_file(self.temp, ".sh", expand(step["run"], known))
        files = {
            name: self.new_file(self.commands, "", "")
            for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
        }
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.work),
            **FACTS,
            "GITHUB_ACTION_PATH": str(action),
            "GITHUB_EVENT_PATH": str(self.event),
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(self.temp),
            "RUNNER_TOOL_CACHE": str(self.tools),
            **{name: str(path) for name, path in files.items()},
            **self.exported,
            **env,
            **{name: expand(value, known) for name, value in step.get("env", {}).items()},
        }
        environment["PATH"] = ":".join([*reversed(self.paths), environment["PATH"]])
        command = [word.replace("{0}", str(script)) for word in shlex.split(SHELLS.get(step["shell"], step["shell"]))]
        identity = {} if self.owner is None else {"user": self.owner, "group": self.owner, "extra_groups": []}
        process = subprocess.Popen(
            command,
            cwd=self.workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **identity,
        )
        if during is not None:
            threading.Thread(target=during, args=(step_id, process), daemon=True).start()
        try:
            log, _ = process.communicate(timeout=1200)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        code = process.returncode if process.returncode >= 0 else 128 - process.returncode
        self.exported.update(read_outputs(files["GITHUB_ENV"]))
        self.paths += files["GITHUB_PATH"].read_text().splitlines()
        return Step(code, log.decode(errors="replace"), files)

    def new_file(self, directory, suffix, text):
        handle, name = tempfile.mkstemp(dir=directory, suffix=suffix)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(name, 0o644)
        if self.owner is not None:
            os.chown(name, self.owner, self.owner)
        return Path(name)


def with_defaults(definition, inputs, contexts=None):
    declared = definition.get("inputs", {})
    unknown = set(inputs) - set(declared)
    assert not unknown, f"inputs that are not declared: {unknown}"
    contexts = contexts or {"github": {"token": TOKEN}, "matrix": None}
    defaults = {name: expand(spec.get("default", ""), contexts) for name, spec in declared.items()}
    return {**defaults, **inputs}


def read_outputs(path):
    """The file behind GITHUB_OUTPUT, `name=value` lines and heredocs; anything else fails the step, as there."""
    outputs = {}
    lines = iter(Path(path).read_text().splitlines())
    for line in lines:
        heredoc = re.match(r"^([^=]+?)<<(.+)$", line)
        if heredoc:
            name, delimiter = heredoc.groups()
            collected = []
            for inner in lines:
                if inner == delimiter:
                    break
                collected.append(inner)
            else:
                raise ValueError(f"Matching delimiter not found '{delimiter}'")
            outputs[name] = "\n".join(collected)
        elif line:
            name, separator, text = line.partition("=")
            if not separator:
                raise ValueError(f"Invalid format '{line}'")
            outputs[name] = text
    return outputs


def wait_for(path, seconds=30):
    """Waits until there is something in `path`."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if path.exists() and path.stat().st_size:
            return
        time.sleep(0.02)
    raise TimeoutError(f"{path} did not appear within {seconds} s")
