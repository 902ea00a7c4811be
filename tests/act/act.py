"""act, which runs the workflows of a repository on this machine, with a GitHub of our own behind its API."""

import dataclasses
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from github import REPOSITORY, GitHub  # noqa: E402

OURS = "little-loops/ll-loop"
TOKEN = "ghs_of_the_job"
RUNNERS = ["ubuntu-24.04", "ubuntu-24.04-arm"]
# What ll-loop's action consists of. act copies the whole directory for each step.
PARTS = ["action.yml", "deliver", "docker", "merge", "plan", "setup", ".github/workflows"]


# The program, but for deliveries: of those it says what it was to do.
PROGRAM = """\
#!/bin/bash
[ "$1" = deliver ] || exec REAL "$@"
echo "to deliver: $*"
printf '%s\\n' delivered=created bundle-digest=sha256:0 >>"$GITHUB_OUTPUT"
"""


def pinned(name):
    """The commit by which our files name an action."""
    texts = [path.read_text() for path in [ROOT / "action.yml", *(ROOT / ".github/workflows").glob("*.yml")]]
    found = {commit for text in texts for commit in re.findall(rf"uses: actions/{name}@(\w+)", text)}
    assert len(found) == 1, f"actions/{name}: {found}"
    return found.pop()


@dataclasses.dataclass
class Played:
    """What act said of a run."""

    code: int
    lines: list

    @property
    def log(self):
        return "\n".join(str(line.get("msg", "")).rstrip() for line in self.lines)

    @property
    def told(self):
        """The end of what a person reads when a test fails."""
        printed = [line["msg"].rstrip() for line in self.lines if line.get("raw_output") or line.get("level") != "info"]
        return f"{self.results}\n" + "\n".join(printed)[-2000:]

    def of(self, job):
        """What the steps of a job printed. A job is named as act does: `tidy-1/check/tidy`."""
        return "\n".join(line["msg"].rstrip() for line in self.lines if line.get("raw_output") and line["job"] == job)

    @property
    def results(self):
        """What became of each job, by its name."""
        return {line["job"].partition("/")[2] if line["job"].count("/") == 1 else line["job"]: line["jobResult"]
                for line in self.lines if "jobResult" in line}  # fmt: skip

    @property
    def steps(self):
        """The names of the steps that were begun."""
        return {line["step"] for line in self.lines if line.get("stage") == "Main" and "step" in line}

    def outputs(self, step):
        """The outputs that each job's step of this id has set, by the job."""
        found = {}
        for line in self.lines:
            if line.get("command") == "set-output" and line.get("stepID", [""])[0] == step:
                found.setdefault(line["job"], {})[line["name"]] = line["arg"]
        return found


class Act:
    """A repository whose workflows act runs."""

    def __init__(self, directory, program):
        self.directory, self.program = Path(directory), Path(directory) / "ll-loop-or-none"
        self.program.write_text(PROGRAM.replace("REAL", shlex.quote(program)))
        self.program.chmod(0o755)
        self.origin = self.directory / "origin"
        self.github = GitHub()
        self.github.token = TOKEN
        # Beyond what `permissions:` says, which act passes over.
        self.github.permissions = {scope: "write" for scope in ("actions", "contents", "pull-requests", "statuses")}
        self.ours = self.directory / "ll-loop"
        for part in PARTS:
            source, to = ROOT / part, self.ours / part
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, to) if source.is_dir() else shutil.copy(source, to)
        self.tools = self.directory / "tools"
        self.tools.mkdir()
        self.origin.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "uploadpack.allowAnySHA1InWant", "true")
        self.git("remote", "add", "origin", f"https://github.com/{REPOSITORY}")

    def close(self):
        self.github.close()

    def git(self, *arguments):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        done = subprocess.run(["git", *identity, *arguments], cwd=self.origin, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, files):
        """Commits files, and returns the commit."""
        for name, text in files.items():
            path = self.origin / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--force", ".")
        self.git("commit", "--quiet", "--message", "Work", "--allow-empty")
        sha, tree = self.git("rev-parse", "HEAD", "HEAD^{tree}").split()
        self.github.trees[sha] = tree
        return sha

    def command(self, event, text, file, payload, inputs, secrets, env):
        path = self.directory / "workflows" / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        (self.directory / "event.json").write_text(json.dumps({**payload, **({"inputs": inputs} if inputs else {})}))
        given = {
            "GITHUB_API_URL": self.github.address,
            "LL_LOOP_BINARY": str(self.program),
            "LL_ORIGIN": str(self.origin),
            "LL_RETRY_WAIT": "20ms",
            **env,
        }
        actions = {f"actions/{name}@{pinned(name)}": ROOT / "tests/act/actions" / name
                   for name in ("attest", "cache", "checkout", "download-artifact", "upload-artifact")}  # fmt: skip
        # Callers name a release, and the workflows of a branch the branch.
        actions[f"{OURS}@v1"] = actions[f"{OURS}@main"] = self.ours
        sha = self.git("rev-parse", "HEAD")
        # Every run of act is the first one.
        self.github.runs[1] = {"event": event, "head_sha": sha, "path": f".github/workflows/{file}", "run_attempt": 1}
        # A port of its own, so that several can run at a time.
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        return [
            "act", event, "--json", "--workflows", path, "--eventpath", self.directory / "event.json",
            "--defaultbranch", "main", "--no-cache-server", "--no-skip-checkout", "--pull=false",
            *(f"--platform={runner}=-self-hosted" for runner in RUNNERS),
            *(f"--local-repository={name}={place}" for name, place in actions.items()),
            *(f"--env={name}={value}" for name, value in given.items()),
            *(f"--secret={name}={value}" for name, value in {"GITHUB_TOKEN": TOKEN, **secrets}.items()),
            "--artifact-server-path", self.directory / "artifacts",
            "--artifact-server-addr", "127.0.0.1", "--artifact-server-port", str(port),
        ]  # fmt: skip

    def run(self, event, text, file="test.yml", payload=None, inputs=None, secrets=None, env=None):
        """Runs the workflow with this text, and returns what became of it."""
        yaml.safe_load(text)
        command = self.command(event, text, file, payload or {}, inputs or {}, secrets or {}, env or {})
        environment = {"PATH": f"{self.tools}:{os.environ['PATH']}", "HOME": str(self.directory / "home")}
        process = subprocess.Popen(
            [str(word) for word in command], cwd=self.origin, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        try:
            log, _ = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return Played(process.returncode, [parsed(line) for line in log.splitlines()])


def parsed(line):
    try:
        return {"job": "", **json.loads(line)}
    except ValueError:
        return {"job": "", "msg": line}
