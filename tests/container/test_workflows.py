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

from docker_action import build_image
from engine import ROOT, Engine, NoEngine
from workflow import Event, Player, Strict, Unknown, contents, expand, holds

sys.path[:0] = [str(ROOT / "tests/packaging"), str(ROOT / "tests/support")]
import runner  # noqa: E402
from expression import Expression  # noqa: E402
from github import GitHub, job_token, message, zipped  # noqa: E402

OWNER = 1001 if os.getuid() == 0 else None
KEY = "sk-ant-of-the-repository"
CALLERS = {
    name: text
    for text, name in re.findall(
        r"^```yaml\n(# \.github/workflows/([\w-]+\.yml)\n.*?)^```$",
        (ROOT / "docs/workflows.md").read_text(),
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
  done: {action: 'test "${captured.first.output}" = of-job-1', terminal: true}
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
    action: echo "at the end, ${captured.last.output}"
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
[ "$ANTHROPIC_API_KEY" = KEY ] || exit 9
[ -z "$LL_TOKEN$ACTIONS_RUNTIME_TOKEN$GITHUB_TOKEN" ] || exit 8
touch src/good
echo "the key is $ANTHROPIC_API_KEY"
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
        (tools / "claude").write_text(CLAUDE.replace("KEY ]", f"{KEY} ]"))
        (tools / "claude").chmod(0o755)
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
        self.assertEqual(found, wanted, self.log(jobs))
        is_red = "failure" in wanted.values()
        self.assertEqual(jobs["tidy"].result, "failure" if is_red else "success")

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
        self.assertEqual(len(self.github.artifacts), 1)

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
        self.assert_results(jobs, find="success", fix="success")
        find, fix = jobs["tidy/find"], jobs["tidy/fix"]
        self.assertEqual(find.steps["loop"]["outputs"]["code"], "75", find.log)
        self.assertIn("llm_disabled", find.log)
        self.assertIn("the key is ***", fix.log)
        self.assertEqual(jobs["tidy"].outputs["outcome"], "success")
        self.assertFalse((find.workspace / "src/good").exists())
        self.assertEqual((fix.workspace / "src/prepared").read_text(), "prepared\n")
        said = self.statuses(head)
        self.assertEqual([line.split(":")[0] for line in said], ["pending", "pending", "pending", "success"], said)
        patch = next(a for a in self.github.artifacts.values() if a.name.startswith("patch-"))
        texts = list(contents(patch.data.read_bytes()))
        self.assertIn(b"+++ b/src/prepared", texts[1])
        self.assertIn(b"b/src/good", texts[1])
        self.assertNotIn(b".loops", texts[1])

    def test_where_no_agent_is_needed_there_is_one_job(self):
        repository = self.repository(FIX)
        head = repository.commit({"src/good": ""})
        self.player(repository)
        jobs = self.fix(pull_request(repository, head))
        self.assert_results(jobs, find="success", fix="skipped")
        self.assertEqual(jobs["tidy"].outputs["outcome"], "success")

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
        self.assertEqual(said[-1], "success: success: `look` said yes")
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


class Nightly(Linked):
    def test_the_second_night_knows_of_the_first(self):
        repository = self.repository(NIGHT, **{"src/broken": ""})
        self.player(repository)
        event = Event("schedule", repository.head())
        first = self.call("nightly.yml", event)
        self.assert_results(first, night="success")
        self.assertIn("this is the first night", first["tidy/night"].log)
        second = self.call("nightly.yml", event)
        self.assert_results(second, night="success")
        self.assertIn("`lint` was fixed in 2 of the last 2 nights", second["tidy/night"].log)
        newest = max(self.github.artifacts.values(), key=lambda artifact: artifact.id)
        nights = next(json.loads(text) for text in contents(newest.data.read_bytes()) if b'"nights":' in text[:200])
        self.assertEqual(len(nights["nights"]), 2)

    def test_a_night_that_meets_its_deadline_goes_on(self):
        slow = NIGHT.replace("rm src/broken", "if test ! -e src/half; then touch src/half; sleep 60; fi; rm src/broken")
        self.repo = self.repository(slow, **{"src/broken": ""})
        self.player(self.repo)
        first = self.link(Event("schedule", self.repo.head()), 3, "nightly.yml")
        self.assert_results(first, night="success")
        event, run_id = self.next(0)
        second = self.link(event, 3, "nightly.yml", run_id=run_id)
        self.assert_results(second, night="success")
        self.assertEqual(second["tidy"].outputs["outcome"], "success")
        # Nobody waits for a verdict about the commit on which a night began.
        self.assertEqual(self.statuses(self.repo.head()), [])


class Container(Played):
    """Two jobs, each in a container of its own, one loop of sixty steps."""

    @classmethod
    def setUpClass(cls):
        try:
            cls.engine = Engine()
            cls.addClassCleanup(cls.engine.close)
            base = cls.engine.base_image()
        except NoEngine as reason:
            raise RuntimeError(f"THE CONTAINER WAS NOT TESTED: {reason}") from reason
        build_image(cls.engine, os.environ["LL_LOOP_BIN"], base)

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

        def during(job, process, started):
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
        called = [re.search(r"uses: .*/workflows/([\w-]+\.yml)@v1", text)[1] for text in CALLERS.values()]
        workflows = (ROOT / ".github/workflows").glob("*.yml")
        ours = [path.name for path in workflows if "workflow_call:" in path.read_text()]
        self.assertEqual(sorted(called), sorted(ours))

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
        names = ["inputs.b", "matrix.os", "hashFiles('x')", "1", ""]
        for text in [*names, "inputs.a > 'x'", "inputs.a inputs.a", "(inputs.a"]:
            with self.assertRaises(Unknown, msg=text):
                Expression(text, self.CONTEXTS, {}).value()

    def test_a_secret_in_an_archive_of_an_artifact_would_be_found(self):
        self.assertIn(KEY.encode(), list(contents(zipped({"run.llz": zipped({"report/log": KEY})}))))


if __name__ == "__main__":
    unittest.main()
