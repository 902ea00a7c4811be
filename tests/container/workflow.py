"""A run of a workflow, as far as its jobs can tell.

It reads workflow files and does what stands there: jobs in the order of `needs`, the legs of a matrix one after the other,
each in a fresh directory, with its conditions, steps, outputs, permissions and concurrency group. `uses:
little-loops/ll-loop/…` is the action or the reusable workflow of this repository, `./…` an action of the checkout. What it
does not know is an error, never passed over. Why any of this is played, and not run, the head of `runner.py` says.
"""

import dataclasses
import fnmatch
import hashlib
import io
import itertools
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import yaml
from docker_action import docker_run
from engine import ROOT

sys.path[:0] = [str(ROOT / "tests/packaging"), str(ROOT / "tests/support")]
from expression import Strict, Unknown, evaluated, expand, holds, text_of, truth  # noqa: E402
from github import REPOSITORY, REPOSITORY_ID, job_token, zipped  # noqa: E402
from runner import TOKEN, Runner, read_outputs, with_defaults  # noqa: E402

OURS = "little-loops/ll-loop"
SHELL = "bash -e {0}"
# Delivers nothing, and writes down what it was to deliver: a server that takes deliveries is played by the tests of the program.
DELIVERER = """\
#!/bin/bash
printf '%s\\n' "$@" >"$RUNNER_TEMP/delivery"
env >"$RUNNER_TEMP/delivery.env"
printf '%s\\n' delivered=created pr-url=https://github.com/o/r/pull/9 bundle-digest=sha256:0 >>"$GITHUB_OUTPUT"
"""
# A pull request from a fork gets no more than this, whatever the workflow says.
READ_ONLY = {"actions": "read", "contents": "read", "statuses": "read"}


def only(table, *known):
    unknown = set(table) - set(known)
    if unknown:
        raise Unknown(f"keys {sorted(map(str, unknown))}")
    return table


# --- Runs ---


@dataclasses.dataclass
class Event:
    """What sets off a run."""

    name: str
    sha: str
    ref: str = "refs/heads/main"
    payload: dict = dataclasses.field(default_factory=dict)
    inputs: dict = dataclasses.field(default_factory=dict)
    is_of_fork: bool = False


@dataclasses.dataclass
class Job:
    """What became of a job."""

    result: str = "success"
    outputs: dict = dataclasses.field(default_factory=Strict)
    steps: dict = dataclasses.field(default_factory=Strict)
    log: str = ""
    workspace: Path | None = None
    # The group, and how it treats the others in it: `single`, `max` or `cancel`.
    group: tuple | None = None
    # The steps that were skipped or done, with their outcomes, those of others included.
    uses: list = dataclasses.field(default_factory=list)
    # The caches that it was given, and those that it left.
    restored: list = dataclasses.field(default_factory=list)
    saved: list = dataclasses.field(default_factory=list)
    # What its token may do.
    permissions: dict = dataclasses.field(default_factory=dict)
    # The words of the command that was to deliver, and its environment.
    delivery: tuple | None = None

    def context(self):
        return Strict(result=self.result, outputs=self.outputs)


class JobRunner(Runner):
    """The runner of one job. What it uploads goes to the GitHub."""

    def __init__(self, directory, owner, github, run_id, head_repository_id, server):
        super().__init__(directory, owner)
        self.github, self.run_id, self.head_repository_id, self.server = github, run_id, head_repository_id, server

    def perform(self, uses, arguments):
        if not uses.startswith("actions/upload-artifact@"):
            raise Unknown(uses)
        if self.server != "https://github.com":
            # GHESNotSupportedError
            return "failure"
        only(arguments, "name", "path", "retention-days", "if-no-files-found", "include-hidden-files", "archive")
        path = self.workspace / arguments["path"]
        # What is not packed is called like the file, and the file is all of it.
        is_packed = arguments.get("archive") != "false"
        name = arguments["name"] if is_packed else path.name
        hidden = arguments.get("include-hidden-files") == "true"
        found = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
        above = path.parent if path.is_file() else path
        files = {
            str(file.relative_to(above)): file.read_bytes()
            for file in found
            if hidden or not any(part.startswith(".") for part in file.relative_to(above).parts)
        }
        if not files:
            return "failure" if arguments.get("if-no-files-found") == "error" else "success"
        if re.search(r'["<>:|*?\r\n\\/]', name) or (f"run-{self.run_id}", name) in self.github.artifacts:
            return "failure"
        content = zipped(files) if is_packed else next(iter(files.values()))
        self.github.store(name, content, self.run_id, head_repository_id=self.head_repository_id)
        return "success"


class Player:
    """Plays runs of the workflows of one repository, which `origin` is."""

    def __init__(self, directory, github, origin, program, path, owner=None, engine=None):
        self.directory, self.github, self.origin, self.program = Path(directory), github, origin, program
        self.path, self.owner, self.engine = path, owner, engine
        self.server = "https://github.com"
        self.runs = 0
        self.run_id = 4000
        # What `actions/cache` has kept: files by the scope and the key.
        self.caches = {}
        self.deliverer = self.directory / "deliverer"
        self.deliverer.write_text(DELIVERER)
        self.deliverer.chmod(0o755)
        # Called with the name of each job and the process of what is going on in it.
        self.during = None

    def play(self, text, file, event, secrets=None, run_id=None, attempt=1, only_jobs=None):
        """Plays one run of the workflow `file` with this text, and returns its jobs by name; inner ones as `a/b`, legs as
        `a (20, linux)`. Of an attempt that is not the first, `only_jobs` are the jobs that are done again."""
        self.run_id = run_id or self.run_id + 1
        self.attempt = attempt
        workflow = yaml.safe_load(text)
        only(workflow, "name", True, "permissions", "concurrency", "jobs")
        triggers = workflow[True] if isinstance(workflow[True], dict) else dict.fromkeys(workflow[True])
        if event.name not in triggers:
            raise Unknown(f"no run on `{event.name}`")
        declared = (triggers.get("workflow_dispatch") or {}).get("inputs", {})
        if set(event.inputs) - set(declared):
            raise Unknown(f"the inputs {sorted(set(event.inputs) - set(declared))} are not declared")
        given = {name: None for name in declared}
        if event.name == "workflow_dispatch":
            given = {name: spec.get("default", "") for name, spec in declared.items()} | event.inputs
        payload = {"inputs": event.inputs, **event.payload} if event.inputs else event.payload
        github = Strict(
            event=payload, event_name=event.name, sha=event.sha, ref=event.ref, repository=REPOSITORY,
            workflow=workflow["name"], run_id=str(self.run_id), run_attempt=str(attempt), token=TOKEN,
        )  # fmt: skip
        self.github.runs[self.run_id] = {
            "event": event.name,
            "head_repository": {"id": REPOSITORY_ID + event.is_of_fork},
            "head_sha": event.sha,
            "path": f".github/workflows/{file}",
            "repository": {"id": REPOSITORY_ID},
            "run_attempt": attempt,
            "status": "in_progress",
        }
        run = Run(self, f"{REPOSITORY}/.github/workflows/{file}@{event.ref}", event, payload, secrets or {}, only_jobs)
        jobs = run.jobs(workflow, {"github": github, "inputs": Strict(given)}, Strict(secrets or {}), None, "")
        return jobs


def legs(strategy, known):
    """The legs of a matrix; of a job without one, a single one that is None."""
    if strategy is None:
        return [None]
    only(strategy, "matrix", "fail-fast", "max-parallel")
    if strategy.get("fail-fast") is not False:
        raise Unknown("a matrix whose legs cancel each other")
    matrix = strategy["matrix"]
    if isinstance(matrix, str):
        matrix = evaluated(matrix, known)
    axes = {name: values for name, values in matrix.items() if name != "include"}
    combined = [dict(zip(axes, values)) for values in itertools.product(*axes.values())] if axes else []
    combined += matrix.get("include", [])
    if not 0 < len(combined) <= 256:
        raise Unknown(f"a matrix of {len(combined)} jobs")
    return combined


def leg_name(name, leg):
    return name if leg is None else f"{name} ({', '.join(text_of(value) for value in leg.values())})"


def cancelled(jobs):
    """The names of jobs that GitHub would cancel if they all began at the same instant, in their order."""
    running, waiting, ended = {}, {}, []
    for name, job in jobs.items():
        if job.group is None:
            continue
        group, kind = job.group[0].lower(), job.group[1]
        if len(group) > 400:
            raise Unknown(f"a concurrency group of {len(group)} characters")
        if group not in running:
            running[group] = name
        elif kind == "cancel":
            ended += [running[group], *waiting.pop(group, [])]
            running[group] = name
        elif kind == "max":
            waiting.setdefault(group, []).append(name)
        else:
            ended += waiting.pop(group, [])
            waiting[group] = [name]
    return ended


class Run:
    def __init__(self, player, workflow_ref, event, payload, secrets, only_jobs):
        self.player, self.workflow_ref, self.event, self.payload = player, workflow_ref, event, payload
        self.only_jobs = only_jobs
        # A job of a stranger has no secrets.
        self.secrets = {} if event.is_of_fork else secrets

    def jobs(self, workflow, contexts, secrets, granted, prefix):
        """The jobs of a workflow. A called one has what is `granted`, and what it names itself is less."""
        if workflow.get("permissions", {}) != {} or (granted is None and "permissions" not in workflow):
            raise Unknown("permissions of a whole workflow")
        done, inner, left = {}, {}, dict(workflow["jobs"])
        while left:
            needs = {name: as_list(job.get("needs", [])) for name, job in left.items()}
            name = next((name for name in left if all(need in done for need in needs[name])), None)
            if name is None:
                raise Unknown(f"`needs` of {sorted(left)}")
            job = left.pop(name)
            known = {**contexts, "needs": Strict({need: done[need].context() for need in needs[name]})}
            permissions = job.get("permissions", granted)
            if permissions is None:
                raise Unknown(f"`{prefix}{name}` does not say what it may do")
            for scope, level in permissions.items():
                if granted is not None and granted.get(scope) not in (level, "write"):
                    raise Unknown(f"`{prefix}{name}` asks for `{scope}: {level}`, which the caller does not grant")
            is_well = all(done[need].result == "success" for need in needs[name])
            of_legs = {}
            if not holds(job.get("if", "success()"), known, is_well):
                of_legs[name] = Job("skipped", Strict({output: "" for output in job.get("outputs", {})}))
            else:
                for leg in legs(job.get("strategy"), known):
                    called = leg_name(name, leg)
                    if self.only_jobs is not None and not prefix and called not in self.only_jobs:
                        continue
                    here = {**known, "matrix": leg}
                    if "uses" in job:
                        of_legs[called] = self.called(job, here, secrets, permissions, inner, f"{prefix}{called}/")
                    else:
                        of_legs[called] = self.job(name, job, {**here, "secrets": secrets}, permissions)
            results = {leg.result for leg in of_legs.values()} or {"skipped"}
            outputs = Strict({key: value for leg in of_legs.values() for key, value in leg.outputs.items()})
            result = next(result for result in ("failure", "cancelled", "success", "skipped") if result in results)
            done[name] = Job(result, outputs)
            inner.update({f"{prefix}{called}": leg for called, leg in of_legs.items()})
        return inner

    def called(self, job, known, secrets, permissions, done, prefix):
        """A job that is a reusable workflow of this repository. Its own jobs come into `done`."""
        only(job, "name", "uses", "with", "secrets", "permissions", "needs", "if", "strategy")
        match = re.fullmatch(rf"{OURS}/(\.github/workflows/[\w-]+\.yml)@v1", job["uses"])
        if not match:
            raise Unknown(job["uses"])
        workflow = yaml.safe_load((ROOT / match[1]).read_text())
        only(workflow, "name", True, "permissions", "jobs")
        call = only(workflow[True]["workflow_call"], "inputs", "secrets", "outputs")
        given = {name: evaluated(value, known) for name, value in job.get("with", {}).items()}
        if set(given) - set(call["inputs"]):
            raise Unknown(f"inputs that `{job['uses']}` does not have: {given}")
        for name, spec in call["inputs"].items():
            if spec.get("required") and name not in given:
                raise Unknown(f"the input `{name}` is required")
            if spec["type"] == "boolean" and not isinstance(given.get(name, False), bool):
                raise Unknown(f"the input `{name}` is no boolean")
            if spec["type"] == "string" and name in given:
                given[name] = text_of(given[name])
        inputs = Strict({name: spec.get("default", "") for name, spec in call["inputs"].items()} | given)
        passed = {
            name: expand(value, {**known, "secrets": self.secrets}) for name, value in job.get("secrets", {}).items()
        }
        declared = call.get("secrets", {})
        if set(passed) - set(declared):
            raise Unknown(f"secrets that `{job['uses']}` does not have: {sorted(passed)}")
        inner_secrets = Strict({name: "" for name in declared} | passed)
        # The matrix is that of the caller's job, of which the called workflow knows nothing.
        inner = self.jobs(workflow, {"github": known["github"], "inputs": inputs}, inner_secrets, permissions, prefix)
        done.update(inner)
        jobs = Strict({name.removeprefix(prefix): job.context() for name, job in inner.items()})
        outputs = {name: expand(spec["value"], {"jobs": jobs}) for name, spec in call.get("outputs", {}).items()}
        results = {job.result for job in inner.values()}
        return Job("failure" if "failure" in results else "success", Strict(outputs))

    def job(self, name, job, contexts, permissions):
        only(
            job, "name", "runs-on", "permissions", "needs", "if", "outputs", "steps", "concurrency", "timeout-minutes",
            "strategy",
        )  # fmt: skip
        expand(job.get("name", ""), contexts)
        player, event = self.player, self.event
        player.runs += 1
        # A token of a fork can write nothing.
        limited = {scope: READ_ONLY.get(scope) for scope in permissions}
        player.github.permissions = limited if event.is_of_fork else permissions
        directory = player.directory / f"job-{player.runs}"
        directory.mkdir()
        os.chmod(directory, 0o755)
        head_repository_id = REPOSITORY_ID + event.is_of_fork
        runner = JobRunner(directory, player.owner, player.github, player.run_id, head_repository_id, player.server)
        runner.matrix = contexts["matrix"]
        runner.event.write_text(json.dumps(self.payload))
        runner.give(runner.event)
        done = Job(workspace=runner.workspace, group=group(job.get("concurrency"), contexts), permissions=permissions)
        done.runs_on = evaluated(job["runs-on"], contexts)
        ids = {step.get("id", f"__{number}"): step for number, step in enumerate(job["steps"])}
        steps = Strict({step_id: Strict(outcome="", conclusion="", outputs={}) for step_id in ids})
        done.steps = steps

        def hash_files(*patterns):
            found = sorted({path for pattern in patterns for path in runner.workspace.glob(pattern)})
            return hashlib.sha256(b"".join(path.read_bytes() for path in found)).hexdigest() if found else ""

        here = Strict(temp=str(runner.temp), os="Linux", arch="X64")
        github = Strict({**contexts["github"], "workspace": str(runner.workspace)})
        known = {**contexts, "github": github, "steps": steps, "runner": here, "hashFiles": hash_files}
        for step_id, step in ids.items():
            only(step, "name", "id", "if", "uses", "with", "run", "env", "continue-on-error")
            if not holds(step.get("if", "success()"), known, done.result == "success", runner.is_cancelled):
                steps[step_id]["outcome"] = steps[step_id]["conclusion"] = "skipped"
                continue
            if "uses" in step:
                done.uses.append(step["uses"])
            outcome = self.step(name, step, known, runner, done, steps[step_id])
            forgiven = outcome == "failure" and step.get("continue-on-error")
            steps[step_id]["outcome"], steps[step_id]["conclusion"] = outcome, "success" if forgiven else outcome
            if steps[step_id]["conclusion"] == "failure":
                done.result = "failure"
        if runner.is_cancelled:
            done.result = "cancelled"
        for scope, key, path in done.saved:
            player.caches[scope, key] = {path: (runner.workspace / path).read_bytes()}
        outputs = job.get("outputs", {})
        done.outputs = Strict({output: expand(value, known) for output, value in outputs.items()})
        return done

    def step(self, job_name, step, known, runner, done, state):
        """Does what a step does, and returns its outcome."""
        env = {
            **self.environment(job_name),
            **{name: expand(value, known) for name, value in step.get("env", {}).items()},
        }
        arguments = {name: expand(value, known) for name, value in step.get("with", {}).items()}
        uses = step.get("uses", "")

        def during(inner, process):
            if inner == "run" and self.player.during:
                self.player.during(job_name, process, None, runner)

        if "run" in step:
            script = {"run": step["run"], "shell": SHELL, "env": {}}
            result = runner.execute(ROOT, "script", script, {}, env, None)
            done.log += result.log
            return "success" if result.code == 0 else "failure"
        if uses.startswith("actions/checkout@"):
            self.checkout(arguments, runner)
            return "success"
        if uses.startswith("actions/upload-artifact@"):
            return runner.perform(uses, arguments)
        if uses.startswith("actions/download-artifact@"):
            return self.download(arguments, runner)
        if uses.startswith("actions/cache@"):
            self.cache(arguments, runner, done)
            return "success"
        # Callers name a release, and the workflows of a branch the branch.
        actions = {f"{OURS}@v1": ROOT, f"{OURS}@main": ROOT, f"{OURS}/setup@main": ROOT / "setup"}
        actions |= {f"{OURS}/{name}@main": ROOT / name for name in ("plan", "merge")}
        if uses in actions or uses.startswith("./"):
            result = runner.run(actions.get(uses, runner.workspace / uses), arguments, env, during)
            done.log += result.log
            state["outputs"] = Strict({**result.outputs, "code": str(result.code)})
            return "success" if result.code == 0 else "failure"
        if uses == f"{OURS}/deliver@main":
            result = runner.run(ROOT / "deliver", arguments, {**env, "LL_LOOP_BINARY": str(self.player.deliverer)})
            done.log += result.log
            lines = (runner.temp / "delivery.env").read_text().splitlines()
            given = dict(line.split("=", 1) for line in lines if "=" in line)
            done.delivery = (runner.temp / "delivery").read_text().splitlines(), given
            state["outputs"] = Strict({**result.outputs, "code": str(result.code)})
            return "success" if result.code == 0 else "failure"
        if uses == f"{OURS}/docker@v1":
            return self.container(job_name, arguments, env, runner, done, state)
        raise Unknown(uses)

    def download(self, arguments, runner):
        """Artifacts of this run of the workflow: one by its name, or each that matches a pattern into a directory of its own."""
        only(arguments, "name", "pattern", "path", "merge-multiple")
        to = runner.workspace / arguments["path"]
        there = {
            artifact.name: artifact
            for artifact in self.player.github.artifacts.values()
            if artifact.final and artifact.backend == f"run-{self.player.run_id}"
        }
        if "name" in arguments:
            if arguments["name"] not in there:
                return "failure"
            found = [(to, there[arguments["name"]])]
        else:
            matching = [name for name in sorted(there) if fnmatch.fnmatchcase(name, arguments["pattern"])]
            merged = arguments.get("merge-multiple") == "true"
            found = [(to if merged else to / name, there[name]) for name in matching]
        for directory, artifact in found:
            directory.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(artifact.data) as archive:
                archive.extractall(directory)
        runner.give(runner.workspace)
        return "success"

    def cache(self, arguments, runner, done):
        """One file. What a job leaves is seen by later ones of the same ref, and what the default branch leaves by all."""
        only(arguments, "path", "key", "restore-keys")
        scopes = [self.event.ref, "refs/heads/main"]
        for key in (arguments["key"], arguments["restore-keys"]):
            for (scope, kept), files in self.player.caches.items():
                if scope in scopes and kept.startswith(key):
                    for path, data in files.items():
                        (runner.workspace / path).write_bytes(data)
                    done.restored.append(kept)
                    if kept == arguments["key"]:
                        return
        done.saved.append((self.event.ref, arguments["key"], arguments["path"]))

    def environment(self, job_name):
        player, event = self.player, self.event
        branch = event.payload.get("pull_request", {})
        return {
            "PATH": player.path,
            "LL_LOOP_BINARY": str(player.program),
            "GITHUB_API_URL": player.github.address,
            "GITHUB_EVENT_NAME": event.name,
            "GITHUB_HEAD_REF": branch.get("head", {}).get("ref", ""),
            "GITHUB_BASE_REF": branch.get("base", {}).get("ref", ""),
            "GITHUB_JOB": job_name,
            "GITHUB_REF": event.ref,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_REPOSITORY_ID": str(REPOSITORY_ID),
            "GITHUB_RUN_ATTEMPT": str(player.attempt),
            "GITHUB_RUN_ID": str(player.run_id),
            "GITHUB_SERVER_URL": player.server,
            "GITHUB_SHA": event.sha,
            "GITHUB_WORKFLOW_REF": self.workflow_ref,
            # So that what goes wrong in a test does so at once.
            "LL_RETRY_WAIT": "20ms",
            **({"DOCKER_HOST": f"unix://{player.engine.socket}"} if player.engine else {}),
        }

    def checkout(self, arguments, runner):
        only(arguments, "persist-credentials", "fetch-depth", "ref", "filter")
        if arguments["persist-credentials"] != "false":
            raise Unknown("credentials in a checkout")
        commit = arguments.get("ref") or self.event.sha
        is_whole = arguments.get("fetch-depth") == "0"
        depth = [] if is_whole else ["--depth=1"]
        refs = ["+refs/heads/*:refs/remotes/origin/*"] if is_whole else []
        for command in (
            ["init", "--quiet", "--initial-branch=main"],
            ["remote", "add", "origin", f"file://{self.player.origin}"],
            ["fetch", "--quiet", "--no-tags", *depth, "origin", commit, *refs],
            ["checkout", "--quiet", "--detach", commit],
            ["remote", "set-url", "origin", f"{self.player.server}/{REPOSITORY}"],
        ):
            trusted = f"safe.directory={runner.workspace}"
            subprocess.run(["git", "-c", trusted, *command], cwd=runner.workspace, check=True)
        runner.give(runner.workspace)

    def container(self, job_name, arguments, env, runner, done, state):
        player = self.player
        definition = yaml.safe_load((ROOT / "docker/action.yml").read_text())
        env = {name: value for name, value in env.items() if name not in ("PATH", "LL_LOOP_BINARY", "DOCKER_HOST")}
        env["ACTIONS_RESULTS_URL"] = player.github.address + "/"
        env["ACTIONS_RUNTIME_TOKEN"] = job_token(f"run-{player.run_id}", job_name)
        inputs = with_defaults(definition, arguments, {"github": {"token": TOKEN}, "matrix": runner.matrix})
        started = docker_run(player.engine, runner, inputs, definition["runs"]["args"], env, network="host")
        process = subprocess.Popen(
            [player.engine.client, *map(str, started.command)], env=started.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        if player.during:
            player.during(job_name, process, started, runner)
        log, _ = process.communicate(timeout=180)
        done.log += log
        declared = {output: "" for output in definition["outputs"]}
        written = read_outputs(started.files["GITHUB_OUTPUT"])
        state["outputs"] = Strict({**declared, **written, "code": str(process.returncode)})
        return "success" if process.returncode == 0 else "failure"


def as_list(value):
    return value if isinstance(value, list) else [value]


def group(concurrency, contexts):
    if concurrency is None:
        return None
    if isinstance(concurrency, str):
        concurrency = evaluated(concurrency, contexts)
    if isinstance(concurrency, str):
        concurrency = {"group": concurrency}
    only(concurrency, "group", "cancel-in-progress", "queue")
    cancels = truth(evaluated(concurrency.get("cancel-in-progress", False), contexts))
    queue = concurrency.get("queue", "single")
    if cancels and queue == "max":
        raise Unknown("`queue: max` with `cancel-in-progress`")
    return expand(concurrency["group"], contexts), "cancel" if cancels else queue


def contents(data):
    """Every text in an archive, archives in it included."""
    yield data
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                yield from contents(archive.read(name))
