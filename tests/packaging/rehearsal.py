"""A rehearsal of releases: the jobs `check` and `publish` of release.yml, step by step as they stand there, against a
repository of ours in the place of GitHub's. `git` is the real one; `gh` is `fake_gh.py`, which keeps releases in a file.

What writes (a push, and each change by `gh`) is counted, and can be made to fail once: before it has an effect, or after
it, as when the answer is lost.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from runner import ROOT

sys.path.insert(0, str(ROOT / ".github/release"))
import packages as made  # noqa: E402

HERE = Path(__file__).resolve().parent
TARGETS = (
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
)
URL = "git@github.com:little-loops/ll-loop.git"
# What of the tree the scripts read and write.
TREE = ("deliver", "merge", "plan", "setup", "docker", ".github", "schema", "action.yml", "CHANGELOG.md")


def packages(version):
    """The names of what packages.py makes."""
    crate = version.removeprefix("v")
    wheels = {f"ll_loop-{made.python_version(version)}-py3-none-{tags}.whl" for tags, _, _ in made.TARGETS.values()}
    programs = {f"little-loops-ll-loop-{system}-{processor}-{crate}.tgz" for _, system, processor in made.TARGETS.values()}
    return wheels | programs | {f"ll-loop-{crate}.tgz", f"ll-loop-{version}-shell.tar.gz"}


class Failed(Exception):
    """A step failed; the message is its name and what it printed."""


class Stage:
    """A remote repository, what GitHub keeps beside it, and the tools that see both."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.remote = self.directory / "remote.git"
        self.releases = self.directory / "releases.json"
        self.releases.write_text("{}")
        tools = self.directory / "tools"
        tools.mkdir()
        fake = "exec '{}' '{}/fake_{}.py' \"$@\"\n"
        scripts = {
            "gh": fake.format(sys.executable, HERE, "gh"),
            "git": '[ "$1" = push ] || exec "$REAL_GIT" "$@"\n' + fake.format(sys.executable, HERE, "git"),
        }
        for name, script in scripts.items():
            (tools / name).write_text(f"#!/bin/sh\n{script}")
            (tools / name).chmod(0o755)
        self.env = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "HOME": str(self.directory),
            "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": f"url.{self.remote}.insteadOf",
            "GIT_CONFIG_VALUE_0": URL,
            "GIT_CONFIG_KEY_1": "init.defaultBranch",
            "GIT_CONFIG_VALUE_1": "main",
            "REAL_GIT": shutil.which("git"),
            "FAKE_RELEASES": str(self.releases),
            "FAKE_REMOTE": str(self.remote),
        }
        self.git("init", "--quiet", "--bare", str(self.remote), cwd=self.directory)
        self.work = self.directory / "work"
        self.git("clone", "--quiet", str(self.remote), str(self.work), cwd=self.directory)
        for name in TREE:
            source = ROOT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, self.work / name)
        self.bump("1.0.0")

    def git(self, *arguments, cwd=None):
        who = ["-c", "user.name=dev", "-c", "user.email=dev@example.com"]
        return subprocess.run(
            [self.env["REAL_GIT"], *who, *arguments], cwd=cwd or self.work, env=self.env,
            check=True, text=True, capture_output=True,
        ).stdout.strip()  # fmt: skip

    def bump(self, crate, branch="main"):
        """A commit on a branch that has the version, pushed. Returns its id."""
        for name in ("Cargo.toml", "Cargo.lock"):
            (self.work / name).write_text(f'[[package]]\nname = "ll-loop"\nversion = "{crate}"\n')
        changelog = self.work / "CHANGELOG.md"
        text = f"## [Unreleased]\n\n- what is coming\n\n## [{crate}] - 2026-11-22\n\n- what {crate} brings [here](docs/ci.md#log) and [there](https://a.example/)\n"
        changelog.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", f"Set the version {crate}")
        self.git("push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")
        return self.git("rev-parse", "HEAD")

    def tags(self):
        lines = self.git("ls-remote", "--refs", "--tags", str(self.remote)).splitlines()
        return {name.removeprefix("refs/tags/"): commit for commit, name in map(str.split, lines)}

    def show(self, path, at):
        return self.git("--git-dir", str(self.remote), "show", f"{at}:{path}")


class Run:
    """A run of the workflow. What the jobs before `publish` built is kept, as it is for jobs that are run again."""

    def __init__(self, stage, version, commit=None, build="1"):
        self.stage, self.version = stage, version
        self.commit = commit or stage.git("rev-parse", "HEAD")
        self.workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
        self.artifacts = Path(tempfile.mkdtemp(dir=stage.directory))
        for target in TARGETS:
            path = self.artifacts / f"program-{target}" / f"ll-loop-{version}-{target}.tar.gz"
            path.parent.mkdir()
            path.write_text(f"{version} {target} {build}")
        (self.artifacts / "packages").mkdir()
        for name in packages(version):
            (self.artifacts / "packages" / name).write_text(f"{name} {build}")
        (self.artifacts / "sbom").mkdir()
        (self.artifacts / "sbom/sbom.cdx.json").write_text('{"bomFormat": "CycloneDX", "components": [{"name": "clap"}]}')
        self.digest = "sha256:" + (build * 64)[:64]
        self.log, self.attested, self.writes = "", [], 0

    def all(self):
        self.job("check")
        self.job("publish")
        return self

    def job(self, name, failing=0, after=False, meanwhile="", **facts):
        """Runs the steps of a job in a checkout of its own.

        The command that writes with the number `failing` fails; or `meanwhile` happens right before it.
        """
        job = self.workflow["jobs"][name]
        temp = Path(tempfile.mkdtemp(dir=self.stage.directory))
        writes = temp / "writes"
        workspace = temp / "workspace"
        known = {
            "inputs.version": self.version,
            "needs.image.outputs.digest": self.digest,
            "github.token": "ghs_of_the_job",
            "github.repository": "little-loops/ll-loop",
            "github.workspace": str(workspace),
            "secrets.RELEASE_KEY": "the key",
        }
        env = {
            **self.stage.env,
            "GITHUB_SHA": self.commit, "GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "main",
            "GITHUB_REPOSITORY": "little-loops/ll-loop", "RUNNER_TEMP": str(temp),
            "FAKE_WRITES": str(writes), "FAKE_NUMBER": str(failing),
            "FAKE_AFTER": "yes" if after else "", "FAKE_MEANWHILE": meanwhile,
            **facts,
            **expanded(self.workflow.get("env", {}), known), **expanded(job.get("env", {}), known),
        }  # fmt: skip
        for step in job["steps"]:
            assert "if" not in step, "conditions are the scripts' own"
            if "uses" in step:
                self.perform(step["uses"].split("@")[0], step.get("with", {}), workspace)
                continue
            done = subprocess.run(
                ["bash", "-e", "-c", step["run"]], cwd=workspace,
                env={**env, **expanded(step.get("env", {}), known)}, text=True, capture_output=True, timeout=120,
            )  # fmt: skip
            self.log += done.stdout + done.stderr
            self.writes = int(writes.read_text()) if writes.exists() else 0
            if done.returncode:
                raise Failed(f"{step['name']}: {done.stdout}{done.stderr}")
        assert not list(temp.glob("release-key.*")), "the key is left behind"

    def perform(self, action, given, workspace):
        if action == "actions/checkout":
            self.stage.git("clone", "--quiet", str(self.stage.remote), str(workspace))
            self.stage.git("checkout", "--quiet", "--detach", self.commit, cwd=workspace)
        elif action == "actions/download-artifact":
            into = workspace / given["path"]
            into.mkdir(exist_ok=True)
            pattern = given.get("pattern", given.get("name"))
            for artifact in self.artifacts.glob(pattern):
                shutil.copytree(artifact, into, dirs_exist_ok=True)
        elif action == "actions/attest":
            for pattern in given["subject-path"].split():
                found = sorted(path.name for path in workspace.glob(pattern))
                assert found, f"nothing to attest at {pattern}"
                self.attested += found
        else:
            raise NotImplementedError(action)


def expanded(env, known):
    return {
        name: re.sub(r"\$\{\{ *(\S+) *\}\}", lambda found: known[found.group(1)], str(value)) for name, value in env.items()
    }
