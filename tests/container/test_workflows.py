"""The workflows to copy, played from the file of the caller to the last status."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import yaml

from docker_action import engine_with_image
from engine import ROOT
from workflow import Event, Player, cancelled, contents

sys.path[:0] = [str(ROOT / "tests/packaging"), str(ROOT / "tests/support")]
import runner  # noqa: E402
from expression import Expression, Strict, Unknown, expand, holds  # noqa: E402
from github import GitHub, job_token, message, zipped  # noqa: E402

OWNER = 1001 if os.getuid() == 0 else None
KEY = "sk-ant-of-the-repository"
CALLERS = {
    name: text
    for page in ("docs/workflows.md", "docs/fan-out.md")
    for text, name in re.findall(
        r"^```yaml\n(# \.github/workflows/([\w-]+\.yml)\n.*?)^```$",
        (ROOT / page).read_text(),
        re.MULTILINE | re.DOTALL,
    )
}

CHECK = """\
name: tidy
description: Finds out whether a file is there
initial: check
scope: [src]
states:
  check: {action: test -e src/good, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
"""

FIX = """\
name: tidy
description: An agent makes what a check misses
initial: prepare
max_iterations: 3
states:
  prepare: {action: 'echo prepared > src/prepared; echo of-job-1', capture: first, next: check}
  check: {action: test -e src/good, on_yes: done, on_no: write}
  write: {action: Write src/good., action_type: prompt, next: check}
  done: {action: 'test ${captured.first.output:shell} = of-job-1', terminal: true}
"""

# Each step takes a moment; ten of them are more than one deadline.
LONG = """\
name: tidy
description: Works for a while
initial: work
max_iterations: 20
states:
  work: {action: 'sleep 0.4; echo $LL_ITERATION >src/$LL_ITERATION', next: look}
  look: {action: test -e src/10, on_yes: done, on_no: work}
  done: {terminal: true}
"""

NIGHT = """\
name: tidy
description: Keeps the tree tidy
initial: lint
maintain: true
states:
  lint: {action: 'test ! -e src/broken', on_yes: done, on_no: mend}
  mend: {action: rm src/broken, next: lint}
  done: {terminal: true}
"""

# Sixty steps. What a step does, it may do twice.
SIXTY = """\
name: sixty
description: Sixty steps
initial: work
scope: [src]
on_change: report
max_iterations: 40
states:
  work:
    action: |
      seq 1 $LL_ITERATION >src/tracked
      echo $LL_ITERATION >src/$LL_ITERATION
      sleep 0.05
      echo "did $LL_ITERATION"
    capture: last
    next: look
  look:
    action: test "$LL_ITERATION" -ge 30
    on_yes: done
    on_no: work
  done:
    action: echo at the end, ${captured.last.output:shell}
    terminal: true
"""

RELAY = """\
name: relay
on: [push]
permissions: {}
jobs:
  first:
    runs-on: ubuntu-24.04
    permissions: { contents: read, statuses: write }
    outputs: { outcome: "${{ steps.loop.outputs.outcome }}" }
    steps:
      - uses: actions/checkout@d23441a48e516b6c34aea4fa41551a30e30af803
        with: { persist-credentials: false }
      - uses: little-loops/ll-loop/docker@v1
        id: loop
        continue-on-error: true
        with: { loop: sixty, checkpoint-every: 1s }
  second:
    needs: first
    if: ${{ !cancelled() && needs.first.outputs.outcome != 'success' }}
    runs-on: ubuntu-24.04
    permissions: { actions: read, contents: write, statuses: write }
    steps:
      - uses: actions/checkout@d23441a48e516b6c34aea4fa41551a30e30af803
        with: { persist-credentials: false }
      - uses: little-loops/ll-loop/docker@v1
        with: { loop: sixty, resume-from: "run:${{ github.run_id }}" }
"""

CLAUDE = """\
#!/bin/bash
[ "$1" = --version ] && { echo "9.9 (fake)"; exit 0; }
# The broker has the key; the agent has a token of this call.
[ -n "$ANTHROPIC_AUTH_TOKEN" ] && [ -z "$ANTHROPIC_API_KEY" ] || exit 9
[ -z "$LL_TOKEN$ACTIONS_RUNTIME_TOKEN$GITHUB_TOKEN" ] || exit 8
touch src/good
echo "the key is <$ANTHROPIC_API_KEY>"
echo '{"type": "result", "subtype": "success", "is_error": false, "result": "wrote it", "total_cost_usd": 0.25}'
"""


class Repository:
    """A repository of a team."""

    def __init__(self, path, files):
        self.path = path
        path.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "uploadpack.allowAnySHA1InWant", "true")
        self.commit(files)

    def git(self, *arguments):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        done = subprocess.run(["git", *identity, *arguments], cwd=self.path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, files):
        for name, text in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "Work")
        return self.head()

    def head(self):
        return self.git("rev-parse", "HEAD")


class Played(unittest.TestCase):
    engine = None

    def setUp(self):
        program = os.environ.get("LL_LOOP_BIN")
        if not program:
            raise RuntimeError("LL_LOOP_BIN is not set: run `tests/run container`, which builds the program")
        directory = tempfile.TemporaryDirectory(prefix="ll-loop-", dir="/var/tmp")
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        os.chmod(self.directory, 0o755)
        self.program = self.directory / "ll-loop"
        os.symlink(program, self.program)
        tools = self.directory / "tools"
        tools.mkdir()
        (tools / "claude").write_text(CLAUDE)
        (tools / "claude").chmod(0o755)
        if self.engine:
            (tools / "docker").symlink_to(self.engine.client)
        self.github = GitHub()
        self.addCleanup(self.github.close)
        self.github.token = runner.TOKEN
        self.jobs = []

    def repository(self, loop, name="tidy", **files):
        return Repository(self.directory / "origin", {f".loops/{name}.yaml": loop, "src/tracked": "", **files})

    def player(self, repository):
        path = f"{self.directory / 'tools'}:/usr/local/bin:/usr/bin:/bin"
        self.played = Player(
            self.directory, self.github, repository.path, Path(os.path.realpath(self.program)), path, OWNER, self.engine
        )
        return self.played

    def play(self, text, file, event, run_id=None, **secrets):
        jobs = self.played.play(text, file, event, secrets, run_id)
        self.jobs += jobs.values()
        return jobs

    def given(self, *lines):
        """The change of a caller's file that gives it more inputs."""
        return ("      loop: tidy\n", "      loop: tidy\n" + "".join(f"      {line}\n" for line in lines))

    def call(self, file, event, changes=(), run_id=None, **secrets):
        """Plays a run of a caller's file of the documentation."""
        text = CALLERS[file]
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        return self.play(text, file, event, run_id, **secrets)

    def statuses(self, sha):
        """What was said of the commit, less times."""
        of = [status for status in self.github.statuses if status["sha"] == sha]
        return [f"{status['state']}: {status['description']}" for status in of]

    def log(self, jobs):
        return "\n".join(f"{name}: {job.result}\n{job.log}" for name, job in jobs.items())

    def assert_results(self, jobs, **wanted):
        found = {name.rpartition("/")[2]: job.result for name, job in jobs.items() if "/" in name}
        if found.get("deliver") == "skipped":
            # Where nothing was fixed, there is nothing to deliver.
            wanted = {"deliver": "skipped", **wanted}
        self.assertEqual(found, wanted, self.log(jobs))
        is_red = "failure" in wanted.values()
        self.assertEqual(jobs["tidy"].result, "failure" if is_red else "success")

    def reports(self):
        """The artifacts with the files of runs. Beside each is the page of that run, as a file of its own."""
        artifacts = [artifact for artifact in self.github.artifacts.values() if artifact.name.startswith("ll-loop-")]
        pages = {artifact.name for artifact in artifacts if artifact.name.endswith(".html")}
        reports = [artifact for artifact in artifacts if artifact.name not in pages]
        self.assertEqual(pages, {f"{artifact.name}.html" for artifact in reports})
        return reports

    def tearDown(self):
        """Whatever happened: no token and no secret is anywhere but where it belongs."""
        texts = [("the log", job.log.encode()) for job in self.jobs]
        for artifact in self.github.artifacts.values():
            if artifact.data is not None:
                texts += [(artifact.name, text) for text in contents(artifact.data.read_bytes())]
        for job in filter(lambda job: job.workspace, self.jobs):
            texts += [(str(path), path.read_bytes()) for path in job.workspace.rglob("*") if path.is_file()]
        services = [job_token(f"run-{run}", job) for run in range(4000, 4010) for job in ("first", "second")]
        tokens = [runner.TOKEN, KEY, *services]
        for place, text in texts:
            for token in tokens:
                self.assertNotIn(token.encode(), text, place)
        self.assertEqual(self.github.refusals, [])


def pull_request(repository, base, owner="o", name="pull_request", is_of_fork=False):
    head = repository.head()
    there, here = {"full_name": f"{owner}/r"}, {"full_name": "o/r"}
    there["id"], here["id"] = 1 if owner == "o" else 2, 1
    pull = {
        "number": 7,
        "head": {"sha": head, "ref": "topic", "repo": there},
        "base": {"sha": base, "ref": "main", "repo": here},
    }
    is_of_base = name == "pull_request_target"
    sha, ref = (base, "refs/heads/main") if is_of_base else (head, "refs/pull/7/merge")
    return Event(name, sha, ref, {"pull_request": pull}, is_of_fork=is_of_fork)


class Check(Played):
    def test_a_loop_that_fails_is_red(self):
        repository = self.repository(CHECK)
        base = repository.head()
        head = repository.commit({"src/other": "x"})
        self.player(repository)
        jobs = self.call("tidy.yml", pull_request(repository, base))
        self.assert_results(jobs, check="failure")
        self.assertEqual(jobs["tidy"].outputs["outcome"], "failure")
        self.assertEqual(self.statuses(head), ["pending: running", "failure: failure: `check` said no"])
        self.assertIn("::error file=.loops/tidy.yaml", jobs["tidy/check"].log)
        self.assertEqual(jobs["tidy/check"].steps["loop"]["outputs"]["code"], "1")
        self.assertEqual(len(self.reports()), 1)

    def test_a_loop_that_succeeds_is_green(self):
        repository = self.repository(CHECK)
        base = repository.head()
        head = repository.commit({"src/good": "x"})
        self.player(repository)
        jobs = self.call("tidy.yml", pull_request(repository, base))
        self.assert_results(jobs, check="success")
        self.assertEqual(self.statuses(head), ["pending: running", "success: success: `check` said yes"])

    def test_nothing_in_scope_is_a_success_that_says_so(self):
        repository = self.repository(CHECK)
        base = repository.head()
        head = repository.commit({"README": "x"})
        self.player(repository)
        jobs = self.call("tidy.yml", pull_request(repository, base))
        self.assert_results(jobs, check="success")
        said = "success: success (not in scope): nothing was run or verified, because nothing changed in `src`"
        self.assertEqual(self.statuses(head), ["pending: running", f"{said} since {base[:7]}"])

    def test_a_fork_gets_its_result_and_a_notice(self):
        repository = self.repository(CHECK)
        base = repository.head()
        head = repository.commit({"src/other": "x"})
        self.player(repository)
        jobs = self.call("tidy.yml", pull_request(repository, base, "mallory", is_of_fork=True))
        self.assert_results(jobs, check="failure")
        self.assertEqual(self.statuses(head), [])
        self.assertEqual(jobs["tidy/check"].log.count("::notice"), 1, jobs["tidy/check"].log)
        self.assertIn("statuses: write", jobs["tidy/check"].log)


class Fix(Played):
    HOST = ('      host: "@anthropic-ai/claude-code@2.1.330"\n', "")

    def fix(self, event):
        return self.call("fix.yml", event, [self.HOST], ANTHROPIC_API_KEY=KEY)

    def test_the_agent_works_in_the_job_that_is_trusted(self):
        repository = self.repository(FIX)
        head = repository.head()
        self.player(repository)
        jobs = self.fix(pull_request(repository, head))
        self.assert_results(jobs, find="success", fix="success", deliver="success")
        find, fix = jobs["tidy/find"], jobs["tidy/fix"]
        self.assertEqual(find.steps["loop"]["outputs"]["code"], "75", find.log)
        self.assertIn("llm_disabled", find.log)
        self.assertIn("the key is <>", fix.log)
        self.assertEqual(jobs["tidy"].outputs["outcome"], "success")
        self.assertFalse((find.workspace / "src/good").exists())
        self.assertEqual((fix.workspace / "src/prepared").read_text(), "prepared\n")
        said = self.statuses(head)
        # What was fixed is no part of the commit until it is delivered.
        self.assertEqual({line.split(":")[0] for line in said}, {"pending"}, said)
        self.assertTrue(said[-1].startswith("pending: waits for the delivery of changes to "), said)
        patch = next(a for a in self.github.artifacts.values() if a.name.startswith("patch-"))
        texts = list(contents(patch.data.read_bytes()))
        self.assertIn(b"+++ b/src/prepared", texts[1])
        self.assertIn(b"b/src/good", texts[1])
        self.assertNotIn(b".loops", texts[1])

    def test_what_the_first_job_says_names_an_artifact_and_nothing_else(self):
        """Its code can find the file of the outputs, and write what it likes after the step."""
        condition = yaml.safe_load((ROOT / ".github/workflows/fix.yml").read_text())["jobs"]["fix"]["if"]
        own, other = {"full_name": "o/r"}, {"full_name": "mallory/r"}
        for said, repo, wanted in (
            ("artifact:ll-loop-tidy-find-r1-a1", own, True),
            ("artifact:ll-loop-tidy-find-r1-a1", other, False),
            ("artifact:program", own, False),
            ("run:1", own, False),
            ("src/theirs.llz", own, False),
            ("", own, False),
        ):
            find = Strict(outputs=Strict({"handoff": "true", "resume-from": said}))
            github = Strict(event={"pull_request": {"head": {"repo": repo}}}, repository="o/r")
            self.assertEqual(holds(condition, {"needs": Strict(find=find), "github": github}, True), wanted, (said, repo))

    def test_where_no_agent_is_needed_there_is_one_job(self):
        repository = self.repository(CHECK, **{"src/good": ""})
        self.player(repository)
        jobs = self.fix(pull_request(repository, repository.head()))
        self.assert_results(jobs, find="success", fix="skipped", deliver="skipped")
        self.assertEqual((jobs["tidy"].outputs["outcome"], jobs["tidy"].outputs["delivered"]), ("success", ""))

    def test_what_was_fixed_is_delivered_by_the_one_job_that_may_write(self):
        repository = self.repository(FIX)
        self.player(repository)
        jobs = self.fix(pull_request(repository, repository.head()))
        self.assert_results(jobs, find="success", fix="success", deliver="success")
        delivery = jobs["tidy/deliver"]
        name = "ll-loop-tidy-fix-r4001-a1"
        words, env = delivery.delivery
        # A fix of a pull request is for the branch of that.
        self.assertEqual(words, ["deliver", "--to=pr", "--base=topic", "--", f"artifact:{name}"])
        self.assertIn(name, [artifact.name for artifact in self.github.artifacts.values()])
        self.assertEqual((env["LL_TOKEN"], env["GITHUB_TOKEN"]), (runner.TOKEN, runner.TOKEN))
        self.assertEqual([name for name in env if "KEY" in name], [], "no key of an agent")
        self.assertEqual(list(delivery.workspace.iterdir()), [], "nothing is checked out")
        outputs = jobs["tidy"].outputs
        self.assertEqual((outputs["delivered"], outputs["pr-url"]), ("created", "https://github.com/o/r/pull/9"))
        writes = {"contents", "pull-requests"}
        for job, may in (("find", set()), ("fix", set()), ("deliver", writes)):
            granted = jobs[f"tidy/{job}"].permissions
            self.assertEqual({scope for scope in writes if granted.get(scope) == "write"}, may, job)

    def test_what_a_job_without_an_agent_fixed_is_delivered_as_well(self):
        loop = CHECK.replace("on_no: failed", "on_no: mend").replace("states:\n", "states:\n  mend: {action: touch src/good, next: check}\n")
        repository = self.repository(loop)
        self.player(repository)
        jobs = self.call("fix.yml", Event("workflow_dispatch", repository.head()), [self.HOST])
        self.assert_results(jobs, find="success", fix="skipped", deliver="success")
        words, _ = jobs["tidy/deliver"].delivery
        self.assertEqual(words, ["deliver", "--to=pr", "--", "artifact:ll-loop-tidy-find-r4001-a1"])

    def test_the_status_waits_for_the_delivery_of_tracked_files(self):
        loop = FIX.replace("'echo prepared > src/prepared; echo of-job-1'", "'echo prepared > src/tracked; echo of-job-1'")
        for given, said in (("pr", "pending: waits for the delivery of changes to "), ("none", "failure: success with changes to ")):
            with self.subTest(deliver=given):
                self.setUp()
                repository = self.repository(loop)
                self.player(repository)
                self.call(
                    "fix.yml", pull_request(repository, repository.head()), [self.HOST, self.given(f"deliver: {given}")],
                    ANTHROPIC_API_KEY=KEY,
                )  # fmt: skip
                self.assertTrue(self.statuses(repository.head())[-1].startswith(said), self.statuses(repository.head()))

    def test_a_token_that_is_given_writes_and_reads_nothing_else(self):
        repository = self.repository(FIX)
        self.player(repository)
        secret = ("    secrets:\n", "    secrets:\n      deliver-token: ${{ secrets.OF_AN_APP }}\n")
        given = self.given("deliver: commit", "allow-path: Cargo.lock")
        event = pull_request(repository, repository.head())
        jobs = self.call("fix.yml", event, [self.HOST, secret, given], ANTHROPIC_API_KEY=KEY, OF_AN_APP="ghs_of_the_app")
        words, env = jobs["tidy/deliver"].delivery
        self.assertEqual(words[1:4], ["--to=commit", "--base=topic", "--allow-path=Cargo.lock"])
        self.assertEqual((env["LL_TOKEN"], env["GITHUB_TOKEN"]), ("ghs_of_the_app", runner.TOKEN))
        self.assertNotIn("ghs_of_the_app", jobs["tidy/fix"].log)

    def test_who_delivers_nothing_grants_nothing(self):
        repository = self.repository(FIX)
        self.player(repository)
        of_delivery = r"(?m)^ +(?:pull-requests|id-token|attestations): write.*\n"
        less = [(line, "") for line in re.findall(of_delivery, CALLERS["fix.yml"])]
        self.assertEqual(len(less), 3)
        changes = [self.HOST, ("contents: write", "contents: read"), *less, self.given("deliver: none")]
        jobs = self.call("fix.yml", pull_request(repository, repository.head()), changes, ANTHROPIC_API_KEY=KEY)
        self.assert_results(jobs, find="success", fix="success", deliver="skipped")

    def test_only_a_success_with_changes_of_this_repository_is_delivered(self):
        condition = yaml.safe_load((ROOT / ".github/workflows/fix.yml").read_text())["jobs"]["deliver"]["if"]
        own, other = {"full_name": "o/r"}, {"full_name": "mallory/r"}
        empty = {"outcome": "", "changed-files": "", "artifact-name": ""}
        for find, fix, repo, ref, event, wanted in (
            (("handoff", "1"), ("success", "2"), own, "topic", "pull_request", True),
            (("success", "2"), None, own, "topic", "pull_request", True),
            (("success", "2"), None, other, "topic", "pull_request", False),
            (("success", "2"), None, own, "topic", "pull_request_target", False),
            (("success", "2"), None, own, "ll-loop/tidy/topic", "pull_request", False),
            (("success", "0"), None, own, "topic", "pull_request", False),
            (("success", ""), None, own, "topic", "pull_request", False),
            (("handoff", "1"), None, own, "topic", "pull_request", False),
            (("handoff", "1"), ("failure", "2"), own, "topic", "pull_request", False),
        ):
            needs = {
                job: Strict(outputs=Strict({**empty, **({} if said is None else dict(zip(empty, said))) }))
                for job, said in (("find", find), ("fix", fix))
            }
            pull = {"head": {"repo": repo, "ref": ref}}
            github = Strict(event={"pull_request": pull}, event_name=event, repository="o/r")
            known = {"needs": Strict(needs), "github": github, "inputs": Strict(deliver="pr")}
            self.assertEqual(holds(condition, known, True), wanted, (find, fix, repo, ref, event))
            known["inputs"] = Strict(deliver="none")
            self.assertFalse(holds(condition, known, True))

    def test_what_the_jobs_before_say_names_an_artifact_of_a_loop_and_nothing_else(self):
        for workflow, jobs in (("fix", ("find", "fix")), ("nightly", ("night",))):
            steps = yaml.safe_load((ROOT / f".github/workflows/{workflow}.yml").read_text())["jobs"]["deliver"]["steps"]
            bundle = next(step["with"]["bundle"] for step in steps if "bundle" in step.get("with", {}))
            for said, wanted in (
                ("ll-loop-tidy-find-r1-a1", "artifact:ll-loop-tidy-find-r1-a1"),
                ("run:latest", "artifact:none"),
                ("program", "artifact:none"),
                ("", "artifact:none"),
            ):
                needs = Strict({job: Strict(outputs=Strict({"artifact-name": said})) for job in jobs})
                self.assertEqual(expand(bundle, {"needs": needs}), wanted)

    def test_a_fork_does_not_reach_the_agent(self):
        repository = self.repository(FIX)
        base = repository.head()
        repository.commit({"src/theirs": ""})
        self.player(repository)
        for name in ("pull_request", "pull_request_target"):
            with self.subTest(event=name):
                event = pull_request(repository, base, "mallory", name, is_of_fork=name == "pull_request")
                changes = [self.HOST, ("  pull_request:\n", f"  {name}:\n")]
                jobs = self.call("fix.yml", event, changes, ANTHROPIC_API_KEY=KEY)
                self.assert_results(jobs, find="failure", fix="skipped")
                refused = name == "pull_request_target"
                why = "which comes from the repository mallory/r" if refused else "llm_disabled"
                self.assertIn(why, jobs["tidy/find"].log)
        self.assertEqual([a for a in self.github.artifacts.values() if a.name.startswith("patch-")], [])


LEGS = """\
name: fix
on: [pull_request]
permissions: {}
jobs:
  tidy:
    strategy:
      fail-fast: false
      matrix: { leg: [good, better, best] }
    permissions: { actions: read, contents: read, statuses: write }
    uses: little-loops/ll-loop/.github/workflows/fix.yml@v1
    with:
      loop: tidy
      params: leg=${{ matrix.leg }}
      key: ${{ toJSON(matrix) }}
      max-cost: "2"
    secrets:
      ANTHROPIC_API_KEY: ${{ secrets.ANTHROPIC_API_KEY }}
"""

OF_LEGS = """\
name: tidy
initial: check
max_iterations: 3
parameters: {leg: {type: string}}
states:
  check: {action: 'test -e src/${context.leg}', on_yes: done, on_no: write}
  write: {action: Write it., action_type: prompt, next: look}
  look: {action: test -e src/good, on_yes: done, on_no: failed}
  done: {action: 'echo "at the end: leg ${context.leg}"', terminal: true}
  failed: {terminal: true, outcome: failure}
"""

TWICE = """\
name: twice
on: [push]
permissions: {}
jobs:
  tidy:
    runs-on: ubuntu-24.04
    permissions: { contents: read, statuses: write }
    outputs: { second: "${{ steps.second.outputs.resume-from }}" }
    steps:
      - uses: actions/checkout@d23441a48e516b6c34aea4fa41551a30e30af803
        with: { persist-credentials: false }
      - uses: little-loops/ll-loop@v1
        id: first
        continue-on-error: true
        with: { loop: tidy, params: leg=first }
      - uses: little-loops/ll-loop@v1
        id: second
        continue-on-error: true
        with: { loop: tidy, params: leg=second }
  last:
    needs: tidy
    runs-on: ubuntu-24.04
    permissions: { actions: read, contents: read, statuses: write }
    steps:
      - uses: actions/checkout@d23441a48e516b6c34aea4fa41551a30e30af803
        with: { persist-credentials: false }
      - uses: little-loops/ll-loop@v1
        with: { loop: tidy, resume-from: "${{ needs.tidy.outputs.second }}", llm: true, args: --max-cost 2 }
        env: { ANTHROPIC_API_KEY: "${{ secrets.ANTHROPIC_API_KEY }}" }
"""

# Two calls of one file that nothing but the file tells apart.
SIDE_BY_SIDE = """\
name: both
on: [pull_request]
permissions: {}
jobs:
  here:
    permissions: { contents: read, statuses: write }
    uses: little-loops/ll-loop/.github/workflows/WORKFLOW@v1
    with: { loop: tidy }
  there:
    permissions: { contents: read, statuses: write }
    uses: little-loops/ll-loop/.github/workflows/WORKFLOW@v1
    with: { loop: tidy, params: leg=there }
"""


OF_NODES = CHECK.replace("states:", "parameters: {node: {type: string}}\nstates:")


class Publish(Played):
    """The run of a fork, and the one after it that sets the status."""

    def publish(self, event, conclusion):
        """Plays the run of the caller that the run of this event sets off, and returns its job."""
        pull = event.payload["pull_request"]
        run = {
            "id": self.played.run_id, "name": "tidy", "path": ".github/workflows/tidy.yml", "event": "pull_request",
            "status": "completed", "conclusion": conclusion, "run_attempt": 1, "head_sha": pull["head"]["sha"],
            "html_url": f"https://github.com/o/r/actions/runs/{self.played.run_id}",
            "head_branch": "topic", "head_repository": pull["head"]["repo"], "repository": pull["base"]["repo"],
            # GitHub names no pull request of a fork.
            "pull_requests": [],
        }  # fmt: skip
        self.github.runs[run["id"]].update(status="completed")
        self.github.pulls = [pull]
        payload = {"action": "completed", "workflow_run": run, "repository": pull["base"]["repo"]}
        jobs = self.call("publish.yml", Event("workflow_run", pull["base"]["sha"], payload=payload))
        return jobs.get("tidy/publish")

    def fork(self, files, owner="mallory"):
        repository = self.repository(CHECK)
        base = repository.head()
        head = repository.commit(files)
        self.player(repository)
        event = pull_request(repository, base, owner, is_of_fork=owner != "o")
        return event, head, self.call("tidy.yml", event)

    def assert_published(self, files, result):
        event, head, jobs = self.fork(files)
        self.assertEqual(jobs["tidy/check"].result, result)
        self.assertEqual(self.statuses(head), [])
        job = self.publish(event, result)
        self.assertEqual(job.result, "success", job.log)
        (said,) = self.statuses(head)
        self.assertTrue(said.startswith(f"{result}: {result}"), said)
        self.assertEqual(self.github.count("/pulls"), 0, "it was not granted")
        # Nothing of the fork is there.
        self.assertEqual(job.uses, ["little-loops/ll-loop/setup@main"])
        self.assertFalse(list(job.workspace.glob("**/tidy.yaml")))

    def test_the_success_of_a_fork_is_said_by_the_run_after_it(self):
        self.assert_published({"src/good": "x"}, "success")

    def test_the_failure_of_a_fork_is_said_by_the_run_after_it(self):
        self.assert_published({"src/other": "x"}, "failure")

    def test_a_loop_that_the_caller_does_not_name_gets_no_status(self):
        event, head, _ = self.fork({"src/good": "x"})
        loops = ("      loops: tidy\n", "      loops: |\n        other\n\n        another\n")
        text = CALLERS["publish.yml"]
        self.assertIn(loops[0], text)
        CALLERS["publish.yml"] = text.replace(*loops)
        self.addCleanup(CALLERS.__setitem__, "publish.yml", text)
        job = self.publish(event, "success")
        self.assertEqual(job.result, "success", job.log)
        said = {status["context"]: status["state"] for status in self.github.statuses if status["sha"] == head}
        # Those that it names are missing.
        self.assertEqual(said, {"ll-loop/other": "error", "ll-loop/another": "error"})

    def test_a_success_that_the_run_itself_denies_is_none(self):
        event, head, _ = self.fork({"src/good": "x"})
        job = self.publish(event, "failure")
        self.assertEqual(job.result, "success", job.log)
        self.assertTrue(self.statuses(head)[-1].startswith("error: "), self.statuses(head))

    def test_what_ran_in_this_repository_is_left_alone(self):
        event, _, _ = self.fork({"src/good": "x"}, "o")
        self.assertIsNone(self.publish(event, "success"))


class Several(Played):
    """Runs of one loop in one run of a workflow."""

    def final(self, sha):
        """What was said last of the commit, by the context."""
        of = [status for status in self.github.statuses if status["sha"] == sha]
        return {status["context"]: status["state"] for status in of}

    def names(self):
        return sorted(artifact.name for artifact in self.reports())

    def test_of_three_legs_one_is_handed_off_and_gone_on_with(self):
        repository = self.repository(OF_LEGS, **{"src/good": "", "src/better": ""})
        head = repository.head()
        self.player(repository)
        jobs = self.play(LEGS, "fix.yml", pull_request(repository, head), ANTHROPIC_API_KEY=KEY)
        results = {name.removeprefix("tidy "): job.result for name, job in jobs.items() if "/" in name}
        wanted = {f"({leg})/find": "success" for leg in ("good", "better", "best")}
        wanted |= {"(good)/fix": "skipped", "(better)/fix": "skipped", "(best)/fix": "success"}
        wanted |= {f"({leg})/deliver": "skipped" for leg in ("good", "better", "best")}
        self.assertEqual(results, wanted, self.log(jobs))
        self.assertIn("at the end: leg best", jobs["tidy (best)/fix"].log)
        contexts = {f"ll-loop/tidy (find.{leg})": "success" for leg in ("good", "better", "best")}
        self.assertEqual(self.final(head), contexts)
        run = self.played.run_id
        for leg in ("good", "better", "best"):
            self.assertTrue([name for name in self.names() if name.startswith(f"ll-loop-tidy-find.{leg}-r{run}-")], self.names())

    def test_two_steps_of_a_job_do_not_take_each_others_run(self):
        repository = self.repository(OF_LEGS)
        self.player(repository)
        jobs = self.play(TWICE, "twice.yml", Event("push", repository.head()), ANTHROPIC_API_KEY=KEY)
        self.assertEqual(len(set(self.names())), 3, self.names())
        self.assertEqual(jobs["last"].result, "success", self.log(jobs))
        self.assertIn("at the end: leg second", jobs["last"].log)

    def test_no_call_cancels_another_one(self):
        repository = self.repository(CHECK)
        self.player(repository)
        base = repository.head()
        repository.commit({"src/good": ""})
        event = pull_request(repository, base)
        for workflow in ("check.yml", "fix.yml"):
            text = SIDE_BY_SIDE.replace("WORKFLOW", workflow).replace("{ contents", "{ actions: read, contents")
            self.assertEqual(cancelled(self.play(text, "both.yml", event)), [], workflow)
        self.assertEqual(cancelled(self.call("matrix.yml", event)), [])

    def test_legs_that_nothing_tells_apart_are_never_green_by_accident(self):
        """The caller has forgotten `key`, and the leg that fails is the first one to report."""
        repository = self.repository(OF_LEGS.replace("action: Write it., action_type: prompt", "action: exit 2"))
        base = repository.head()
        head = repository.commit({"src/better": "x"})
        self.player(repository)
        text = LEGS.replace("      key: ${{ toJSON(matrix) }}\n", "").replace("fix.yml@", "check.yml@")
        # A check asks no agent, so it has neither the key nor a cap.
        text = re.sub(r"    secrets:\n.*\n|      max-cost: .*\n", "", text).replace("[good, better, best]", "[best, better]")
        jobs = self.play(text, "tidy.yml", pull_request(repository, base))
        results = [job.result for name, job in jobs.items() if "/" in name]
        self.assertEqual(results, ["failure", "success"], self.log(jobs))
        self.assertNotIn(self.final(head)["ll-loop/tidy"], ("success", "pending"), self.statuses(head))
        last = jobs["tidy (better)/check"].log
        self.assertIn("pass `key`", last)
        # The second upload is refused: its name is taken.
        self.assertEqual(len(self.names()), 1)
        self.assertEqual(jobs["tidy (better)/check"].steps["loop"]["outputs"]["artifact-name"], "")

    def test_a_leg_that_is_run_again_alone_has_its_own_result(self):
        repository = self.repository(OF_NODES)
        base = repository.head()
        head = repository.commit({"src/other": "x"})
        self.player(repository)
        event = pull_request(repository, base)
        text = CALLERS["matrix.yml"]
        jobs = self.play(text, "matrix.yml", event)
        self.assertEqual({job.result for job in jobs.values()}, {"failure"}, self.log(jobs))
        self.assertEqual(len(self.names()), 4)
        leg = "tidy (ubuntu-24.04, 20)"
        again = self.played.play(text, "matrix.yml", event, {}, self.played.run_id, attempt=2, only_jobs=[leg])
        self.assertEqual([name for name in again if "/" in name], [f"{leg}/check"])
        self.assertEqual(len([name for name in self.names() if name.endswith("-a2")]), 1)
        self.assertEqual(set(self.final(head).values()), {"failure"})


class Inputs(Played):
    """What platform teams set."""

    ACTION = next(iter(re.findall(
        r"^```yaml\n(# \.github/actions/ll-loop-setup/action\.yml\n.*?)^```$",
        (ROOT / "docs/workflows.md").read_text(), re.MULTILINE | re.DOTALL,
    )))  # fmt: skip
    LOOP = """\
name: tidy
initial: a
states:
  a: {action: 'echo "level $TIDY_LEVEL"; cat kept 2>/dev/null; echo kept >kept', on_yes: z, on_error: z, on_no: z}
  z: {terminal: true}
"""

    def set_up(self, **files):
        return self.repository(self.LOOP, **{".github/actions/ll-loop-setup/action.yml": self.ACTION, **files})

    def test_a_runner_is_a_label_or_json(self):
        repository = self.set_up()
        self.player(repository)
        for given, runs_on in (
            ("ubuntu-24.04-arm", "ubuntu-24.04-arm"),
            ("""'["self-hosted", "linux"]'""", ["self-hosted", "linux"]),
            ("""'{"group": "big", "labels": ["linux"]}'""", {"group": "big", "labels": ["linux"]}),
        ):
            jobs = self.call("tidy.yml", Event("push", repository.head()), [self.given(f"runs-on: {given}")])
            self.assertEqual(jobs["tidy/check"].runs_on, runs_on)

    def test_the_set_up_of_the_repository_comes_before_the_loop(self):
        repository = self.set_up()
        self.player(repository)
        jobs = self.call("tidy.yml", Event("push", repository.head()), [self.given("setup: true")])
        self.assertIn("level strict", jobs["tidy/check"].log)

    def test_no_set_up_of_a_stranger_is_run_where_the_token_may_write(self):
        repository = self.set_up()
        base = repository.head()
        repository.commit({".github/actions/ll-loop-setup/action.yml": self.ACTION + "    - {shell: bash, run: 'echo mine'}\n"})
        self.player(repository)
        event = pull_request(repository, base, "mallory", "pull_request_target")
        for file in ("fix.yml", "chain.yml"):
            changes = [self.given("setup: true", "cache-path: kept")]
            on = ("  pull_request:\n", "  pull_request_target:\n")
            changes.append(on if file == "fix.yml" else ("  push:\n    branches: [main]\n", "  pull_request_target:\n"))
            jobs = self.call(file, event, changes)
            (job,) = [job for name, job in jobs.items() if name in ("tidy/find", "tidy/link")]
            self.assertEqual(job.result, "failure")
            self.assertNotIn("mine", job.log)
            self.assertEqual([uses for uses in job.uses if "cache" in uses or "setup" in uses], [])

    def test_what_the_first_job_leaves_in_a_cache_does_not_come_to_the_job_with_the_key(self):
        repository = self.repository(FIX)
        self.player(repository)
        changes = [Fix.HOST, self.given("cache-path: src/prepared", "cache-key: build")]
        jobs = self.call("fix.yml", pull_request(repository, repository.head()), changes, ANTHROPIC_API_KEY=KEY)
        self.assert_results(jobs, find="success", fix="success", deliver="success")
        self.assertEqual(len(jobs["tidy/find"].saved), 1)
        self.assertFalse([uses for uses in jobs["tidy/fix"].uses if "cache" in uses])

    def test_a_cache_is_of_the_files_that_it_is_made_from(self):
        repository = self.set_up(**{"Cargo.lock": "1"})
        self.player(repository)
        changes = [self.given("cache-path: kept", "cache-hash: Cargo.lock")]
        seen = []
        for text in ("1", "1", "2"):
            repository.commit({"Cargo.lock": text, "other": str(len(seen))})
            jobs = self.call("tidy.yml", Event("push", repository.head()), changes)
            seen.append(jobs["tidy/check"])
        self.assertEqual([len(job.restored) for job in seen], [0, 1, 1])
        self.assertEqual([len(job.saved) for job in seen], [1, 0, 1], "the second is the same, the third has a new name")

    def test_a_job_may_what_the_caller_grants_and_no_more(self):
        repository = self.repository(CHECK, **{"src/good": ""})
        self.player(repository)
        grant = ("      contents: read\n", "      contents: read\n      checks: write\n")
        usual = {"contents": "read", "statuses": "write"}
        for changes, may in (([], usual), ([grant], {**usual, "checks": "write"})):
            jobs = self.call("tidy.yml", Event("push", repository.head()), changes)
            self.assert_results(jobs, check="success")
            self.assertEqual(self.github.permissions, may)

    def test_groups_carry_the_key_and_drop_nothing(self):
        repository = self.repository(NIGHT)
        self.player(repository)
        of = {}
        for file, event in (("nightly.yml", "schedule"), ("chain.yml", "push")):
            jobs = self.call(file, Event(event, repository.head()), [self.given("key: 'Leg 1'", "working-directory: .")])
            (of[file],) = [job.group for job in jobs.values() if job.group]
        head = "refs/heads/main"
        self.assertEqual(of["nightly.yml"], (f"ll-loop-nightly-tidy-.-Leg 1-{head}", "max"))
        self.assertEqual(of["chain.yml"], (f"ll-loop-chain-tidy-.-Leg 1-{head}", "max"))

    def test_every_input_is_in_the_table_and_does_something(self):
        page = (ROOT / "docs/workflows.md").read_text()
        table = {}
        for names, *marks in re.findall(r"^\| (`.*?) \|(.*?)\|(.*?)\|(.*?)\|(.*?)\| .* \|$", page, re.MULTILINE):
            for name in re.findall(r"`([\w-]+)`", names):
                table[name] = [mark.strip() == "✓" for mark in marks]
        for at, workflow in enumerate(("check", "fix", "nightly", "chain")):
            text = (ROOT / f".github/workflows/{workflow}.yml").read_text()
            inputs = yaml.safe_load(text)[True]["workflow_call"]["inputs"]
            self.assertEqual(set(inputs), {name for name, marks in table.items() if marks[at]}, workflow)
            for name in inputs:
                self.assertRegex(text[text.index("\njobs:") :], rf"inputs\.{name}\b", f"{workflow}: {name}")


class Ends(Played):
    """Ends that the runner makes, as only GitHub's does."""

    SLOW = "name: tidy\ninitial: work\nstates:\n  work: {action: 'touch src/began; sleep 600', next: done}\n  done: {terminal: true}\n"

    def end(self, stop):
        repository = self.repository(self.SLOW)
        self.player(repository)

        def during(job, process, started, runner):
            until = time.monotonic() + 60
            began = runner.workspace / "src/began"
            while process.poll() is None and not began.exists() and time.monotonic() < until:
                time.sleep(0.01)
            if process.poll() is None:
                stop(process, runner)

        self.played.during = during
        jobs = self.call("tidy.yml", Event("push", repository.head()))
        return jobs, jobs["tidy/check"], self.statuses(repository.head())

    def test_a_job_that_is_cancelled_stores_what_it_has(self):
        def cancel(process, runner):
            runner.is_cancelled = True
            process.send_signal(signal.SIGINT)

        _, job, said = self.end(cancel)
        self.assertEqual(job.result, "cancelled", job.log)
        outputs = job.steps["loop"]["outputs"]
        self.assertEqual((outputs["outcome"], outputs["code"]), ("interrupted", "130"))
        self.assertTrue(outputs["artifact-name"])
        self.assertEqual(len(self.reports()), 1)
        self.assertTrue(said[-1].startswith("error: "), said)

    def test_a_run_that_is_killed_is_reported_by_the_step_after_it(self):
        _, job, said = self.end(lambda process, _: process.kill())
        outputs = job.steps["loop"]["outputs"]
        self.assertEqual((outputs["outcome"], outputs["exit-code"], outputs["code"]), ("interrupted", "137", "137"), job.log)
        self.assertEqual(len(self.reports()), 1)
        self.assertRegex(said[-1], r"^error: .*killed.*`work`")


class OtherServer(Played):
    def test_where_artifacts_are_refused_the_log_says_so(self):
        """GitHub Enterprise Server: actions/upload-artifact refuses it, and no step has the token of the service."""
        repository = self.repository(CHECK, **{"src/good": ""})
        self.player(repository)
        self.played.server = "https://github.example.com"
        jobs = self.call("tidy.yml", Event("push", repository.head()))
        job = jobs["tidy/check"]
        self.assert_results(jobs, check="success")
        self.assertEqual(job.steps["loop"]["outputs"]["artifact-name"], "")
        self.assertEqual(self.statuses(repository.head())[-1], "success: success: `check` said yes")
        address = "https://github.example.com/o/r/actions/runs/"
        self.assertTrue(all(status["target_url"].startswith(address) for status in self.github.statuses))


class Linked(Played):
    DEADLINE = ("      loop: tidy\n", '      loop: tidy\n      deadline: 3s\n      max-chain: "{}"\n')

    def link(self, event, most, file="chain.yml", **options):
        old, new = self.DEADLINE
        return self.call(file, event, [(old, new.format(most))], **options)

    def next(self, number):
        """The event of the run that was dispatched, and its id."""
        self.assertEqual(len(self.github.dispatches), number + 1)
        body = self.github.dispatches[number]
        event = Event("workflow_dispatch", self.repo.head(), body["ref"], inputs=body["inputs"])
        return event, body["run_id"]


class Chain(Linked):
    def test_a_run_goes_on_until_the_loop_ends(self):
        self.repo = self.repository(LONG)
        head = self.repo.head()
        self.player(self.repo)
        jobs = self.link(Event("push", head), 10)
        self.assert_results(jobs, link="success")
        self.assertEqual(jobs["tidy"].outputs["outcome"], "handoff")
        self.assertEqual(jobs["tidy/link"].steps["loop"]["outputs"]["code"], "75", jobs["tidy/link"].log)
        event, run_id = self.next(0)
        self.assertEqual(event.inputs, {"resume-from": f"run:{self.played.run_id}", "chain-depth": "1", "sha": head})
        # The branch moves meanwhile.
        moved = self.repo.commit({"src/later": "x"})
        for number in range(1, 8):
            event.sha = moved
            jobs = self.link(event, 10, run_id=run_id)
            self.assert_results(jobs, link="success")
            if jobs["tidy"].outputs["outcome"] == "success":
                break
            event, run_id = self.next(number)
            self.assertEqual(event.inputs["chain-depth"], str(number + 1))
        self.assertEqual(jobs["tidy"].outputs["outcome"], "success", jobs["tidy/link"].log)
        workspace = jobs["tidy/link"].workspace
        self.assertTrue((workspace / "src/10").exists())
        self.assertFalse((workspace / "src/later").exists(), "a run goes on where it began")
        self.assertEqual(self.statuses(moved), [])
        said = self.statuses(head)
        self.assertEqual({line.split(":")[0] for line in said[:-1]}, {"pending"}, said)
        self.assertRegex(said[-1], r"^failure: success with changes to \d+ files, not part of this commit$")
        self.assertIn(f"pending: handed off: goes on in run {self.github.dispatches[0]['run_id']}", said)

    def test_a_chain_has_an_end(self):
        self.repo = self.repository(LONG.replace("sleep 0.4", "sleep 60"))
        head = self.repo.head()
        self.player(self.repo)
        self.assert_results(self.link(Event("push", head), 1), link="success")
        event, run_id = self.next(0)
        jobs = self.link(event, 1, run_id=run_id)
        self.assert_results(jobs, link="failure")
        self.assertEqual(jobs["tidy"].outputs["outcome"], "handoff")
        self.assertEqual(len(self.github.dispatches), 1)
        end = "handed off, and nothing goes on: the chain had its 1 further runs (`--max-chain`)"
        self.assertEqual(self.statuses(head)[-1], f"failure: {end}")

    def test_a_refusal_of_github_is_red(self):
        self.repo = self.repository(LONG.replace("sleep 0.4", "sleep 60"))
        self.player(self.repo)
        self.github.fault("/dispatches", 99, message(403, "the token may start nothing"))
        jobs = self.link(Event("push", self.repo.head()), 1)
        self.assert_results(jobs, link="failure")
        self.assertTrue(self.statuses(self.repo.head())[-1].startswith("error: handed off, and nothing goes on"))


NAMESAKE = """\
name: namesake
on: [pull_request]
permissions: {}
jobs:
  night:
    runs-on: ubuntu-24.04
    permissions: { contents: read, statuses: write }
    steps:
      - uses: actions/checkout@d23441a48e516b6c34aea4fa41551a30e30af803
        with: { persist-credentials: false }
      - uses: little-loops/ll-loop@v1
        with: { loop: tidy }
"""


class Nightly(Linked):
    def test_the_second_night_knows_of_the_first(self):
        repository = self.repository(NIGHT, **{"src/broken": ""})
        self.player(repository)
        event = Event("schedule", repository.head())
        first = self.call("nightly.yml", event)
        self.assert_results(first, night="success", deliver="success")
        self.assertIn("this is the first night", first["tidy/night"].log)
        second = self.call("nightly.yml", event)
        self.assert_results(second, night="success", deliver="success")
        self.assertIn("`lint` was fixed in 2 of the last 2 nights", second["tidy/night"].log)
        newest = max(self.reports(), key=lambda artifact: artifact.id)
        nights = next(json.loads(text) for text in contents(newest.data.read_bytes()) if b'"nights":' in text[:200])
        self.assertEqual(len(nights["nights"]), 2)

    def test_what_a_night_fixed_is_delivered_to_its_branch(self):
        repository = self.repository(NIGHT, **{"src/broken": ""})
        self.player(repository)
        jobs = self.call("nightly.yml", Event("schedule", repository.head()), [self.given("allow-path: yarn.lock")])
        words, env = jobs["tidy/deliver"].delivery
        name = "artifact:ll-loop-tidy-night-r4001-a1"
        self.assertEqual(words, ["deliver", "--to=pr", "--allow-path=yarn.lock", "--", name])
        self.assertEqual((env["GITHUB_REF"], env["LL_TOKEN"]), ("refs/heads/main", runner.TOKEN))
        self.assertEqual(jobs["tidy"].outputs["delivered"], "created")
        self.assertEqual(jobs["tidy/night"].permissions, {"actions": "write", "contents": "read"})

    def test_a_night_that_fails_by_its_changes_alone_is_delivered(self):
        for action, result in (("rm src/broken", "success"), ("touch src/tracked; echo >>src/tracked; false", "skipped")):
            loop = CHECK.replace("test -e src/good, on_yes: done, on_no: failed", "test ! -e src/broken, on_yes: done, on_no: mend")
            mend = f"  mend: {{action: '{action}', on_yes: check, on_no: failed}}\n"
            with self.subTest(action=action):
                self.setUp()
                repository = self.repository(loop.replace("  done:", f"{mend}  done:"), **{"src/broken": ""})
                self.player(repository)
                jobs = self.call("nightly.yml", Event("schedule", repository.head()))
                self.assertEqual(jobs["tidy"].outputs["outcome"], "failure", self.log(jobs))
                self.assert_results(jobs, night="failure", deliver=result)

    def test_a_clean_night_delivers_nothing(self):
        repository = self.repository(NIGHT)
        self.player(repository)
        jobs = self.call("nightly.yml", Event("schedule", repository.head()))
        self.assert_results(jobs, night="success", deliver="skipped")

    def test_nights_do_not_know_of_the_checks_between_them(self):
        repository = self.repository(NIGHT, **{"src/broken": ""})
        self.player(repository)
        for night in range(4):
            jobs = self.call("nightly.yml", Event("schedule", repository.head()))
            self.assert_results(jobs, night="success", deliver="success")
            event = pull_request(repository, repository.head())
            self.call("tidy.yml", event)
            # Its job has the name of that of the night, so its artifact has the same key.
            self.play(NAMESAKE, "namesake.yml", event)
        self.assertIn("`lint` was fixed in 4 of the last 4 nights", jobs["tidy/night"].log)

    def test_a_night_that_meets_its_deadline_goes_on(self):
        slow = NIGHT.replace("rm src/broken", "if test ! -e src/half; then touch src/half; sleep 60; fi; rm src/broken")
        self.repo = self.repository(slow, **{"src/broken": ""})
        self.player(self.repo)
        first = self.link(Event("schedule", self.repo.head()), 3, "nightly.yml")
        self.assert_results(first, night="success", deliver="skipped")
        event, run_id = self.next(0)
        second = self.link(event, 3, "nightly.yml", run_id=run_id)
        self.assert_results(second, night="success", deliver="success")
        self.assertEqual(second["tidy"].outputs["outcome"], "success")
        # Nobody waits for a verdict about the commit on which a night began.
        self.assertEqual(self.statuses(self.repo.head()), [])


class Container(Played):
    """Two jobs, each in a container of its own, one loop of sixty steps."""

    @classmethod
    def setUpClass(cls):
        cls.engine, _ = engine_with_image(cls.addClassCleanup)

    def setUp(self):
        super().setUp()
        repository = self.repository(SIXTY, "sixty")
        self.sha = repository.head()
        self.player(repository)

    def relay(self, during=None):
        self.played.during = during
        return self.play(RELAY, "relay.yml", Event("push", self.sha))

    def after_steps(self, number, stop):
        """Does something to the first job when it has made so many steps."""

        def during(job, process, started, _):
            if job != "first":
                return
            src = self.directory / f"job-{self.played.runs}/_work/project/project/src"
            until = time.monotonic() + 60
            while not (src / str(number)).exists():
                self.assertLess(time.monotonic(), until, "the loop does not work")
                time.sleep(0.01)
            stop(process, started)

        return during

    def steps(self, job):
        """The steps that the log of a job shows, of which the last may have been cut short."""
        return re.findall(r"^::group::\[\d+/40\] (work|look)", job.log, re.MULTILINE)

    def steps_in_the_checkpoint(self):
        """The steps that were over in the last journal that the first job uploaded."""
        of_first = [artifact for artifact in self.github.artifacts.values() if "-first-" in artifact.name]
        newest = max(of_first, key=lambda artifact: artifact.id)
        journal = next(text for text in contents(newest.data.read_bytes()) if b'"loop_start"' in text.split(b"\n")[0])
        return len(re.findall(rb'"event": ?"action_complete"', journal))

    def tree(self, job):
        return {path.name: path.read_text() for path in (job.workspace / "src").iterdir()}

    def end(self, job):
        """Captures and counters at the end."""
        states = [path for path in (job.workspace / ".loops").rglob("*state.json") if path.is_file()]
        state = json.loads(states[0].read_text())
        return state["captured"]["last"]["output"], state["iteration"], state["status"]

    def assert_like_uninterrupted(self, jobs):
        first, second = jobs["first"], jobs["second"]
        self.assertEqual(second.result, "success", self.log(jobs))
        self.assertIn("at the end, did 30", second.log)
        said = self.statuses(self.sha)
        # The work changes files, so the commit itself is not what succeeded.
        self.assertRegex(said[-1], r"^failure: success with changes to \d+ files, not part of this commit$")
        self.assertNotEqual(first.workspace, second.workspace)
        whole = self.relay()
        self.assertEqual(whole["first"].result, "success", self.log(whole))
        self.assertEqual(whole["second"].result, "skipped")
        self.assertEqual(len(self.steps(whole["first"])), 60)
        self.assertEqual(self.tree(second), self.tree(whole["first"]))
        self.assertEqual(self.end(second), self.end(whole["first"]))

    def test_a_job_that_is_ended_is_gone_on_with(self):
        def end(process, _):
            process.send_signal(signal.SIGTERM)

        jobs = self.relay(self.after_steps(12, end))
        first, second = jobs["first"], jobs["second"]
        self.assertEqual(first.steps["loop"]["outputs"]["code"], "143", first.log)
        self.assertEqual(first.outputs["outcome"], "interrupted")
        made = len(self.steps(first)) + len(self.steps(second))
        # The one that was interrupted, if one was, is the only one that is made again.
        self.assertIn(made, (60, 61), self.log(jobs))
        self.assertGreaterEqual(len(self.steps(first)), 23)
        self.assertEqual(len(self.github.refs), 1, "one job has taken the run")
        self.assert_like_uninterrupted(jobs)

    def test_a_container_that_is_killed_is_gone_on_with_from_its_checkpoint(self):
        def kill(_, started):
            until = time.monotonic() + 60
            while not any(artifact.final for artifact in self.github.artifacts.values()):
                self.assertLess(time.monotonic(), until, "there is no checkpoint")
                time.sleep(0.01)
            self.engine("kill", "--signal", "KILL", started.name)

        jobs = self.relay(self.after_steps(8, kill))
        first, second = jobs["first"], jobs["second"]
        self.assertEqual(first.steps["loop"]["outputs"]["code"], "137", first.log)
        self.assertEqual(first.outputs["outcome"], "")
        # What was done since the checkpoint is done again, and no more.
        saved = self.steps_in_the_checkpoint()
        self.assertGreater(saved, 0)
        self.assertGreaterEqual(len(self.steps(first)), saved)
        self.assertEqual(len(self.steps(second)), 60 - saved, self.log(jobs))
        self.assert_like_uninterrupted(jobs)


class Callers(unittest.TestCase):
    """The files of callers in the documentation."""

    def test_there_is_one_for_each_reusable_workflow(self):
        # One that signs calls another one before.
        called = [name for text in CALLERS.values() for name in re.findall(r"uses: .*/workflows/([\w-]+\.yml)@v1", text)]
        workflows = (ROOT / ".github/workflows").glob("*.yml")
        ours = [path.name for path in workflows if "workflow_call:" in path.read_text()]
        self.assertEqual(set(called), set(ours))

    def test_they_pass_the_linters(self):
        with tempfile.TemporaryDirectory() as directory:
            workflows = Path(directory) / ".github/workflows"
            workflows.mkdir(parents=True)
            for name, text in CALLERS.items():
                (workflows / name).write_text(text)
            files = [str(path) for path in workflows.iterdir()]
            for command in (
                ["zizmor", "--offline", "--pedantic", "--no-progress", "--config", str(ROOT / ".github/zizmor.yml")],
                ["check-jsonschema", "--builtin-schema", "vendor.github-workflows"],
            ):
                done = subprocess.run([*command, *files], capture_output=True, text=True, cwd=directory)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            action = Path(directory) / "action.yml"
            action.write_text(Inputs.ACTION)
            command = ["check-jsonschema", "--builtin-schema", "vendor.github-actions", str(action)]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Playing(unittest.TestCase):
    """The player itself: what it takes for true, and that it passes nothing over."""

    CONTEXTS = {"inputs": Strict(a="x", none=None, empty=""), "github": Strict(event={"pull": {"number": "7"}})}

    def check(self, text, wanted):
        self.assertEqual(Expression(text, self.CONTEXTS, {}).value(), wanted, text)

    def test_values(self):
        self.check("inputs.a == 'X' && 'it''s' || ''", "it's")
        self.check("inputs.empty || inputs.none || 'c'", "c")
        self.check("inputs.none == ''", True)
        self.check("!github.event.pull || github.event.pull.number == '8'", False)
        self.check("!(inputs.a != 'x' && inputs.a)", True)
        self.check("github.event.missing.further", None)
        self.check("format('-{0}-{1}', inputs.a, inputs.none)", "-x-")
        self.check("""fromJSON('{"a": 1, "b": "y"}').b""", "y")
        # What does not decide is not called: this is no JSON.
        self.check("startsWith(inputs.a, '{') && fromJSON(inputs.a) || inputs.a", "x")
        self.assertEqual(expand("a ${{ inputs.a }} ${{ !inputs.a }}", self.CONTEXTS), "a x false")

    def test_conditions(self):
        for text, is_well, wanted in (
            ("inputs.a == 'x'", True, True),
            ("inputs.a == 'x'", False, False),
            ("${{ !cancelled() && inputs.a == 'x' }}", False, True),
            ("always()", False, True),
            ("failure()", True, False),
        ):
            self.assertEqual(holds(text, self.CONTEXTS, is_well), wanted, text)

    def test_what_it_does_not_know_is_an_error(self):
        names = ["inputs.b", "matrix.os", "hashFiles('x')", "1", "", "fromJSON", "upper('x')"]
        for text in [*names, "inputs.a > 'x'", "inputs.a inputs.a", "(inputs.a"]:
            with self.assertRaises(Unknown, msg=text):
                Expression(text, self.CONTEXTS, {}).value()

    def test_a_secret_in_an_archive_of_an_artifact_would_be_found(self):
        self.assertIn(KEY.encode(), list(contents(zipped({"run.llz": zipped({"report/log": KEY})}))))


if __name__ == "__main__":
    unittest.main()
