"""The reusable workflow that spreads a loop over many jobs, played with the caller of docs/fan-out.md: a plan, legs in
fresh checkouts, and the one check that is required."""

import json
import os
import re
import signal
import subprocess
import time
import unittest

from docker_action import IMAGE, engine_with_image
from test_workflows import CALLERS, OWNER, Played
from workflow import Event

CALLER = CALLERS["packages.yml"]
LOOP = """\
name: tidy
description: one package
initial: test
parameters:
  path: {type: string}
scope: ["${context.path}"]
states:
  test:
    action: sh ${context.path:shell}/test.sh ${context.path:shell}
    on_yes: done
    on_no: fix
  fix:
    action: echo fixed > ${context.path:shell}/state && [ ! -e ${context.path:shell}/hopeless ]
    on_yes: test
    on_no: failed
  done: {terminal: true}
  failed: {terminal: true}
"""
TEST = 'test "$(cat "$1/state")" = fixed\n'
PACKAGES = ("api", "core", "docs", "ui", "web")
FIVE = "      per-path: packages/*\n      legs: '5'\n"


class Fan(Played):
    def packages(self, **states):
        files = {f"packages/{name}/state": states.get(name, "fixed\n") for name in PACKAGES}
        return self.repository(LOOP, **files, **{f"packages/{name}/test.sh": TEST for name in PACKAGES})

    def fan(self, repository, event=None, attempt=1, only_jobs=None, run_id=None, **changes):
        text = CALLER.replace("      per-path: packages/*\n", FIVE)
        for old, new in changes.values():
            self.assertIn(old, text)
            text = text.replace(old, new)
        event = event or Event("push", repository.head())
        jobs = self.played.play(text, "packages.yml", event, {}, run_id, attempt, only_jobs)
        self.jobs += jobs.values()
        return jobs

    def results(self, jobs):
        """What became of the plan, of each leg by its title, and of the merge."""
        short = {}
        for name, job in jobs.items():
            if "/" in name:
                inner = name.split("/", 1)[1]
                leg = re.fullmatch(r"leg \(l\d+, (.*)\)", inner)
                short[leg[1].removeprefix("packages/") if leg else inner] = job.result
        return short

    def all_of(self, repository, **changes):
        self.player(repository)
        return self.fan(repository, since=("      changed-since: auto\n", ""), **changes)

    def merged(self, jobs):
        merge = next(job for name, job in jobs.items() if name.endswith("/merge"))
        path = merge.workspace / ".loops/.running/merged.report/result.json"
        return merge, json.loads(path.read_text())

    def status(self, repository):
        return self.statuses(repository.head())[-1]


class FanOut(Fan):
    def test_five_legs_are_one_green_check(self):
        repository = self.packages()
        jobs = self.all_of(repository)
        wanted = {"plan": "success", "merge": "success", **dict.fromkeys(PACKAGES, "success")}
        self.assertEqual(self.results(jobs), wanted, self.log(jobs))
        merge, result = self.merged(jobs)
        self.assertEqual((result["verified"], len(result["items"])), (True, 5))
        self.assertEqual(self.status(repository), "success: success: 5 of 5 items verified")
        self.assertEqual(len({job.workspace for job in jobs.values() if job.workspace}), 7, "a checkout for each job")
        names = [name for _, name in self.github.artifacts if name.startswith("ll-loop-tidy-l")]
        self.assertEqual(len(names), 5, names)
        self.assertTrue(all(re.fullmatch(r"ll-loop-tidy-l0[1-5]-r\d+-a1", name) for name in names), names)

    def test_a_leg_that_fails_is_red_and_so_is_the_check(self):
        repository = self.packages(web="broken\n")
        jobs = self.all_of(repository)
        results = self.results(jobs)
        self.assertEqual((results["web"], results["api"], results["merge"]), ("failure", "success", "failure"), self.log(jobs))
        self.assertEqual(self.status(repository).split(":")[0], "failure")
        outputs = jobs["tidy"].outputs
        self.assertEqual((outputs["outcome"], outputs["verified"], outputs["resume"]), ("failure", "false", ""))
        self.assertEqual(json.loads(outputs["rerun"])["include"], [{"leg": "l05", "title": "packages/web"}])

    def test_a_leg_that_never_came_back_is_what_the_check_says_first(self):
        repository = self.packages()
        self.player(repository)

        def lose(job_name, process, container, runner):
            if runner.matrix and runner.matrix["title"].endswith("docs"):
                process.send_signal(signal.SIGKILL)

        self.played.during = lose
        jobs = self.fan(repository, since=("      changed-since: auto\n", ""))
        self.assertEqual(self.results(jobs)["merge"], "failure", self.log(jobs))
        merge, result = self.merged(jobs)
        self.assertEqual(result["missing"], ["l03"])
        self.assertRegex(self.status(repository), r"^error: error: leg_missing: l03 \(packages/docs\)")

    def test_what_is_run_again_counts(self):
        repository = self.packages(web="broken\n")
        works = self.directory / "works"
        repository.commit({"packages/web/test.sh": f"[ -e {works} ]\n", "packages/web/hopeless": ""})
        first = self.all_of(repository)
        self.assertEqual(self.results(first)["merge"], "failure", self.log(first))
        self.assertEqual(self.status(repository).split(":")[0], "failure")
        works.touch()
        again = self.fan(repository, attempt=2, run_id=self.played.run_id, since=("      changed-since: auto\n", ""))
        self.assertEqual(self.results(again)["merge"], "success", self.log(again))
        _, result = self.merged(again)
        self.assertEqual({item["attempt"] for item in result["items"]}, {2})
        self.assertEqual(len(result["superseded"]), 5)

    def test_legs_lock_their_scopes_for_all_machines(self):
        repository = self.packages()
        # The server that the runner's checkouts name is not there.
        leases = self.directory / "leases.git"
        subprocess.run(["git", "init", "--quiet", "--bare", str(leases)], check=True)
        if OWNER:
            subprocess.run(["chown", "--recursive", str(OWNER), str(leases)], check=True)
        jobs = self.all_of(repository, lock=("      legs: '5'\n", f"      legs: '5'\n      lock: git={leases}\n"))
        self.assertEqual(self.results(jobs)["merge"], "success", self.log(jobs))
        for name in PACKAGES:
            self.assertIn(f"locked `packages/{name}` for all machines", self.log(jobs))
        left = subprocess.run(["git", "-c", "safe.directory=*", "-C", str(leases), "for-each-ref"], check=True, capture_output=True, text=True)
        self.assertEqual(left.stdout, "", "each lease is removed")

    def test_nothing_changed_is_green_and_says_so(self):
        repository = self.packages()
        head = repository.commit({"README.md": "more"})
        self.player(repository)
        base = repository.git("rev-parse", "HEAD~1")
        payload = {"pull_request": {"head": {"sha": head, "ref": "topic", "repo": {"full_name": "o/r"}}, "base": {"sha": base, "ref": "main"}, "number": 1}}
        jobs = self.fan(repository, Event("pull_request", head, payload=payload))
        results = self.results(jobs)
        self.assertEqual(results, {"plan": "success", "leg": "skipped", "merge": "success"}, self.log(jobs))
        _, result = self.merged(jobs)
        self.assertIn("changed since", result["sentence"])

    def test_what_the_items_fixed_is_one_bundle(self):
        repository = self.packages(api="broken\n", web="broken\n")
        jobs = self.all_of(repository, report=("      legs: '5'\n", "      legs: '5'\n      on-change: report\n"))
        self.assertEqual(self.results(jobs)["merge"], "success", self.log(jobs))
        outputs = jobs["tidy"].outputs
        self.assertEqual((outputs["outcome"], outputs["changed-files"]), ("success", "2"))
        merge, _ = self.merged(jobs)
        directory = merge.workspace / ".loops/.running/merged.report"
        done = subprocess.run(
            [str(self.program), "deliver", str(directory), "--to", "patch", "--report-dir", str(self.directory / "patch")],
            cwd=repository.path, capture_output=True, text=True, env={"PATH": os.environ["PATH"], "HOME": str(self.directory)},
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        patch = (self.directory / "patch/changes.patch").read_text()
        self.assertEqual(patch.count("diff --git"), 2, patch)


class FanOutInAnImage(Fan):
    @classmethod
    def setUpClass(cls):
        cls.engine, _ = engine_with_image(cls.addClassCleanup)

    def test_legs_run_in_the_image_and_are_one_result(self):
        repository = self.packages(api="broken\n", web="broken\n")
        # A file that is in no checkout, and in the image alone.
        here = "      legs: '5'\n      on-change: report\n      network: none\n" + f"      image: {IMAGE}\n"
        repository.commit({f"packages/{name}/test.sh": f"test -x /usr/local/bin/ll-loop && {TEST}" for name in PACKAGES})
        jobs = self.all_of(repository, image=("      legs: '5'\n", here))
        self.assertEqual(self.results(jobs)["merge"], "success", self.log(jobs))
        outputs = jobs["tidy"].outputs
        self.assertEqual((outputs["outcome"], outputs["changed-files"]), ("success", "2"))
        self.assertRegex(self.status(repository), "^failure: success with changes to 2 files", self.log(jobs))

    def test_of_a_container_that_is_killed_the_journal_is_merged(self):
        repository = self.packages(docs="broken\n")
        repository.commit({"packages/docs/test.sh": "touch packages/docs/waits; sleep 300\n"})
        self.player(repository)

        def lose(job_name, process, container, runner):
            if runner.matrix and runner.matrix["title"].endswith("docs"):
                waits, until = runner.workspace / "packages/docs/waits", time.monotonic() + 60
                while not waits.exists():
                    self.assertLess(time.monotonic(), until, "the leg does not begin")
                    time.sleep(0.05)
                (name,) = self.engine("ps", "--quiet", "--filter", "name=ll-loop-").stdout.split()
                self.engine("kill", "--signal", "KILL", name)

        self.played.during = lose
        image = ("      legs: '5'\n", f"      legs: '5'\n      network: none\n      image: {IMAGE}\n")
        jobs = self.fan(repository, since=("      changed-since: auto\n", ""), image=image)
        self.assertEqual(self.results(jobs)["merge"], "failure", self.log(jobs))
        _, result = self.merged(jobs)
        (docs,) = [item for item in result["items"] if item["leg"] == "l03"]
        # What it wrote to the workspace outlives the container, up to its last step.
        self.assertEqual((docs["outcome"], docs["verified"]), (None, False))
        self.assertRegex(docs["reason"], "^incomplete: the journal ends in `test`")
        self.assertEqual(self.results(jobs)["web"], "success")


if __name__ == "__main__":
    unittest.main()
