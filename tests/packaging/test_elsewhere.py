"""Fan-out on GitLab, Buildkite and Kubernetes: what `plan --matrix` prints is checked against their schemas, and its jobs are
played, each in a clone of its own with what its system would give it."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import kubernetes_validate
import yaml

from runner import ROOT

PAGE = ROOT / "docs/fan-out-elsewhere.md"
PROGRAM = Path(os.environ.get("LL_LOOP_BIN", ROOT / "target/release/ll-loop"))

LOOP = """\
name: tidy
description: d
initial: check
parameters: {path: {type: string}}
scope: ['${context.path}']
states:
  check: {action: 'test "$(cat ${context.path:shell}/state)" = ok', on_yes: done, on_no: fix}
  fix: {action: 'if test -n "$SLOW"; then sleep 60; fi; echo ok > ${context.path:shell}/state', next: check}
  done: {terminal: true}
"""

# Names of directories that a shell, YAML or a CI system would obey.
HOSTILE = ["$(touch pwned)", "${{ github.token }}", "{{ matrix }}", "a\nb: c", "it's \"so\"", "`touch pwned`", "$HOME", "!reference [a]"]
# All that plain systems give.
CLAIMS = ["--repo-claim", "checkout", "--claim", "reports"]
# The versions of Kubernetes in which what the job needs is stable or on by default.
VERSIONS = ["1.29", "1.31", "1.34", "1.37"]

# Downloads what was stored, as the agent does: it fails if there is nothing.
AGENT = """\
#!/usr/bin/env python3
import os, pathlib, re, shutil, sys
command, action, pattern, *options = sys.argv[1:]
store = pathlib.Path({store!r})
if action == "upload":
    # What pipelines are made of lies beside what is stored.
    to = store / os.environ["BUILDKITE_JOB_ID"] if command == "artifact" else store.parent
    to.mkdir(exist_ok=True)
    sys.exit(not shutil.copy(pattern, to))
assert (command, action) == ("artifact", "download"), sys.argv
destination, *options = options
jobs = sorted(store.iterdir())
if "--step" in options:
    jobs = [store / options[options.index("--step") + 1]]
wanted = re.compile(re.escape(pattern).replace(r"\\*\\*/\\*", ".*").replace(r"\\*", "[^/]*"), re.DOTALL)
found = [(job, file) for job in jobs for file in job.rglob("*") if file.is_file() and wanted.fullmatch(str(file.relative_to(job)))]
for job, file in found:
    to = pathlib.Path(destination) / file.relative_to(job)
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, to)
sys.exit(not found)
"""


class Elsewhere(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ll-elsewhere-")
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.tools = self.directory / "tools"
        self.tools.mkdir()
        (self.tools / "ll-loop").symlink_to(PROGRAM)
        self.store = self.directory / "store"
        self.store.mkdir()
        self.agent = self.tools / "buildkite-agent"
        self.agent.write_text(AGENT.format(store=str(self.store)))
        self.agent.chmod(0o755)
        self.clones = 0

    # --- What jobs are made of ---

    def repository(self, packages, below=""):
        """A repository with these packages, each of which needs a fix."""
        self.project = self.directory / "project"
        top = self.project / below
        (top / ".loops").mkdir(parents=True)
        (top / ".loops/tidy.yaml").write_text(LOOP)
        for package in packages:
            (top / "packages" / package).mkdir(parents=True)
            (top / "packages" / package / "state").write_text("bad\n")
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("add", "--force", ".")
        self.git("commit", "--quiet", "--message", "Work")
        return top

    def git(self, *arguments, cwd=None):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run(["git", *identity, *arguments], cwd=cwd or self.project, check=True, capture_output=True)

    def clone(self):
        self.clones += 1
        clone = self.directory / f"clone{self.clones}"
        self.git("clone", "--quiet", str(self.project), str(clone))
        return clone

    def environment(self, **more):
        return {"PATH": f"{self.tools}:{os.environ['PATH']}", "HOME": str(self.directory), "CI": "true", **more}

    def plan(self, *arguments, cwd=None, code=0, **environment):
        done = subprocess.run(
            ["ll-loop", "plan", "tidy", *arguments],
            cwd=cwd or self.project,
            env=self.environment(**environment),
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def jobs(self, system, *arguments, cwd=None, **environment):
        """Plans an item for each package, and returns what the system reads."""
        return self.plan("--per-path", "packages/*", "--matrix", system, *arguments, cwd=cwd, **environment)

    def shell(self, script, cwd, **environment):
        command = ["bash", "-e", "-c", script]
        done = subprocess.run(command, cwd=cwd, env=self.environment(**environment), capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def keep(self, job, clone, paths):
        """Stores what a job leaves, as its system does."""
        for path in paths:
            if (clone / path).is_dir():
                shutil.copytree(clone / path, self.store / job / path, dirs_exist_ok=True)
            elif (clone / path).exists():
                (self.store / job / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(clone / path, self.store / job / path)

    def checked(self, schema, text):
        file = self.directory / "checked.json"
        file.write_text(text)
        done = subprocess.run(
            ["check-jsonschema", "--builtin-schema", schema, str(file)], capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        # YAML reads what JSON says.
        self.assertEqual(yaml.safe_load(text), json.loads(text))
        return json.loads(text)

    def assert_merged(self, code, log, count):
        self.assertEqual(code, 0, log)
        self.assertIn(f"{count} of {count} item{'s' if count != 1 else ''} verified", log)
        self.assertEqual(list(self.directory.rglob("pwned")), [])

    # --- GitLab ---

    def gitlab_job(self, job, pipeline, parent, name, cache=None, **environment):
        """Plays a job of the child pipeline with what it would be given."""
        clone = self.clone()
        if "extends" in job:
            job = {**pipeline[job["extends"]], **job}
        variables = {"GITLAB_CI": "true", "CI_PIPELINE_ID": "88", "CI_JOB_NAME": name, **job.get("variables", {})}
        variables["CI_JOB_ID"] = str(self.clones)
        for need in job.get("needs", []):
            self.assertEqual(need, {"pipeline": "77", "job": "the plan"})
            for path in parent:
                (clone / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.project / path, clone / path)
        if "needs" not in job and job["stage"] == "merge":
            for stored in self.store.iterdir():
                shutil.copytree(stored, clone, dirs_exist_ok=True)
        if cache and cache.exists():
            shutil.copytree(cache, clone, dirs_exist_ok=True)
        code, log = self.shell("\n".join(job["script"]), clone, **variables, **environment)
        paths = [path.replace("$LEG", variables.get("LEG", "")) for path in job["artifacts"]["paths"]]
        shutil.rmtree(self.store / name, ignore_errors=True)
        self.keep(name, clone, paths)
        return code, log

    def gitlab(self, *arguments, below="", packages=HOSTILE):
        top = self.repository(packages, below)
        text = self.jobs("gitlab", *arguments, cwd=top, CI_PIPELINE_ID="77", CI_JOB_NAME="the plan")
        pipeline = self.checked("vendor.gitlab-ci", text)
        return pipeline, {name: job for name, job in pipeline.items() if isinstance(job, dict) and "extends" in job}

    def test_gitlab_merges_what_its_legs_leave(self):
        pipeline, legs = self.gitlab("--image", "registry/x:1", "--run-args", "--on-change report", below="it's $(here)")
        self.assertEqual(pipeline["default"]["image"]["name"], "registry/x:1")
        self.assertEqual(len(legs), len(HOSTILE))
        self.assertEqual(pipeline[".leg"]["cache"]["paths"], ["it's $(here)/.loops/.running/legs"])
        for name, job in legs.items():
            code, log = self.gitlab_job(job, pipeline, ["it's $(here)/plan.json"], name.replace("/", "-"))
            self.assertEqual(code, 0, log)
        code, log = self.gitlab_job(pipeline["merge"], pipeline, [], "merge")
        self.assert_merged(code, log, len(HOSTILE))
        self.assertTrue((self.store / "merge/it's $(here)/.loops/.running/merged/junit.xml").exists())

    def test_gitlab_misses_a_leg_and_goes_on_with_one_that_handed_off(self):
        pipeline, legs = self.gitlab("--run-args", "--on-change report --deadline 3s", packages=["a", "b"])
        (first, one), (second, two) = legs.items()
        self.assertEqual(self.gitlab_job(one, pipeline, ["plan.json"], "one")[0], 0)
        code, log = self.gitlab_job(pipeline["merge"], pipeline, [], "merge")
        self.assertEqual(code, 4, log)
        self.assertIn("leg_missing: l02 (packages/b)", log)
        code, log = self.gitlab_job(two, pipeline, ["plan.json"], "two", SLOW="1")
        self.assertEqual(code, 75, log)
        self.assertEqual(pipeline[".leg"]["allow_failure"], {"exit_codes": [75]})
        code, log = self.gitlab_job(pipeline["merge"], pipeline, [], "merge")
        self.assertEqual(code, 75, log)
        # What is cached is what was stored.
        code, log = self.gitlab_job(two, pipeline, ["plan.json"], "two", cache=self.store / "two")
        self.assertEqual(code, 0, log)
        self.assertIn("goes on", log)
        code, log = self.gitlab_job(pipeline["merge"], pipeline, [], "merge")
        self.assert_merged(code, log, 2)

    def test_gitlab_merges_a_plan_without_items(self):
        self.repository(["a"])
        text = self.plan("--per-path", "absent/*", "--matrix", "gitlab", CI_PIPELINE_ID="77", CI_JOB_NAME="the plan")
        pipeline = self.checked("vendor.gitlab-ci", text)
        code, log = self.gitlab_job(pipeline["merge"], pipeline, ["plan.json"], "merge")
        self.assertEqual(code, 0, log)
        self.assertIn("absent/*", log)

    # --- Buildkite ---

    def buildkite_step(self, step, **environment):
        clone = self.clone()
        more = {"BUILDKITE": "true", "BUILDKITE_BUILD_NUMBER": "9", "BUILDKITE_JOB_ID": f"job-{self.clones}"}
        more["BUILDKITE_STEP_KEY"] = step["key"]
        code, log = self.shell(step["command"], clone, **more, **environment)
        self.assertTrue(step["artifact_paths"].endswith("/**/*"))
        self.keep(f"job-{self.clones}", clone, [step["artifact_paths"].removesuffix("/**/*")])
        return code, log

    def buildkite(self, *arguments, below="", packages=HOSTILE):
        top = self.repository(packages, below)
        text = self.jobs("buildkite", *arguments, cwd=top, BUILDKITE_JOB_ID="planner")
        self.checked("vendor.buildkite", text)
        self.keep("planner", self.project, [f"{below}plan.json"])
        # A plan of another step, which nobody may take.
        (self.store / "other").mkdir()
        (self.store / "other/plan.json").write_text("{}")
        self.assertNotIn("$", text.replace("$$", ""))
        return json.loads(text.replace("$$", "$"))["steps"]

    def test_buildkite_merges_what_its_legs_leave(self):
        group, merge = self.buildkite("--run-args", "--on-change report", below="it's $(here)/")
        self.assertEqual(merge["depends_on"], [group["key"]])
        self.assertEqual(len({step["key"] for step in group["steps"]}), len(HOSTILE))
        for step in group["steps"]:
            code, log = self.buildkite_step(step)
            self.assertEqual(code, 0, log)
        code, log = self.buildkite_step(merge)
        self.assert_merged(code, log, len(HOSTILE))

    def test_buildkite_misses_legs_and_goes_on_with_one_that_handed_off(self):
        group, merge = self.buildkite("--run-args", "--on-change report --deadline 3s", packages=["a", "b"])
        one, two = group["steps"]
        code, log = self.buildkite_step(merge)
        self.assertEqual(code, 4, log)
        self.assertEqual(self.buildkite_step(one)[0], 0)
        self.assertEqual(self.buildkite_step(two, SLOW="1")[0], 75)
        code, log = self.buildkite_step(merge)
        self.assertEqual(code, 75, log)
        code, log = self.buildkite_step(two, BUILDKITE_RETRY_COUNT="1")
        self.assertEqual(code, 0, log)
        self.assertIn("goes on", log)
        code, log = self.buildkite_step(merge)
        self.assert_merged(code, log, 2)

    def test_buildkite_merges_a_plan_without_items(self):
        self.repository(["a"])
        text = self.plan("--per-path", "absent/*", "--matrix", "buildkite", BUILDKITE_JOB_ID="planner")
        self.checked("vendor.buildkite", text)
        self.keep("planner", self.project, ["plan.json"])
        (merge,) = json.loads(text.replace("$$", "$"))["steps"]
        code, log = self.buildkite_step(merge)
        self.assertEqual(code, 0, log)

    # --- Kubernetes ---

    def kubernetes(self, *arguments, below="", packages=HOSTILE):
        top = self.repository(packages, below)
        objects = json.loads(self.jobs("k8s", *CLAIMS, *arguments, cwd=top))["items"]
        for version in VERSIONS:
            for one in objects:
                kubernetes_validate.validate(one, version, strict=True)
        for one in objects:
            self.assertRegex(one["metadata"]["name"], r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
            self.assertLessEqual(len(one["metadata"]["name"]), 50)
            for label in one["metadata"]["labels"].values():
                self.assertLessEqual(len(label), 63)
        config, job = objects
        self.assertEqual([config["kind"], job["kind"]], ["ConfigMap", "Job"])
        # As a pod sees it.
        mounted = self.directory / "mounted"
        (mounted / "..1").mkdir(parents=True)
        for name, text in config["data"].items():
            (mounted / "..1" / name).write_text(text)
            (mounted / name).symlink_to(f"..data/{name}")
        (mounted / "..data").symlink_to("..1")
        self.reports = self.directory / "reports"
        return job

    def pod(self, job, index, **environment):
        """Plays a pod: its volumes are directories, and every one of its containers runs here."""
        spec = job["spec"]["template"]["spec"]
        self.clones += 1
        work = self.directory / f"pod{self.clones}"
        work.mkdir()
        expand = lambda text: re.sub(r"\$\$|\$\(JOB_COMPLETION_INDEX\)", lambda m: "$" if m[0] == "$$" else str(index), text)  # noqa: E731
        (container,) = spec["containers"]
        (mount,) = [mount for mount in container["volumeMounts"] if mount["name"] == "reports"]
        reports = self.reports / expand(mount["subPathExpr"])
        reports.mkdir(parents=True, exist_ok=True)
        places = {"/repo": self.project, "/workspace": work, "/plan": self.directory / "mounted", "/reports": reports}
        here = lambda text: re.sub(r"(?<![\w/])/(repo|workspace|plan|reports)\b", lambda m: str(places[m[0]]), text)  # noqa: E731
        for one in [*spec["initContainers"], container]:
            command = [here(expand(word)) for word in [*one["command"], *one.get("args", [])]]
            cwd = here(one.get("workingDir", "/workspace"))
            variables = {pair["name"]: here(pair["value"]) for pair in one.get("env", [])}
            env = self.environment(**environment, **variables, JOB_COMPLETION_INDEX=str(index))
            done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=120)
            if done.returncode:
                break
        return done.returncode, done.stdout + done.stderr

    def owned_by(self, user):
        for path in [self.project, *self.project.rglob("*")]:
            os.chown(path, user, -1, follow_symlinks=False)

    def merge(self, cwd):
        command = f"ll-loop merge --ci --plan '{self.directory}/mounted/plan.json' '{self.reports}' --report-dir '{self.directory}/merged'"
        return self.shell(command, cwd)

    def test_kubernetes_pods_leave_what_a_merge_reads(self):
        job = self.kubernetes("--run-args", "--on-change report", below="it's $(here)")
        self.assertEqual(job["spec"]["completions"], len(HOSTILE))
        # The volume is somebody else's, and what lies there is not what was planned.
        state = self.project / "it's $(here)/packages/$HOME/state"
        state.write_text("changed\n")
        if os.geteuid() == 0:
            self.owned_by(12345)
        for index in range(len(HOSTILE)):
            code, log = self.pod(job, index)
            self.assertEqual(code, 0, log)
        self.assertEqual(state.read_text(), "changed\n")
        if os.geteuid() == 0:
            self.owned_by(0)
        code, log = self.merge(self.project / "it's $(here)")
        self.assert_merged(code, log, len(HOSTILE))

    def test_a_pod_goes_on_with_what_the_one_before_it_had_handed_off(self):
        job = self.kubernetes("--run-args", "--on-change report --deadline 3s", packages=["a", "b"])
        self.assertEqual(self.pod(job, 0)[0], 0)
        code, log = self.pod(job, 1, SLOW="1")
        self.assertEqual(code, 75, log)
        # Which the policy does not take as the end of it.
        (values,) = [rule["onExitCodes"]["values"] for rule in job["spec"]["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
        self.assertNotIn(75, values)
        code, log = self.merge(self.project)
        self.assertEqual(code, 75, log)
        code, log = self.pod(job, 1)
        self.assertEqual(code, 0, log)
        self.assertIn("goes on", log)
        code, log = self.merge(self.project)
        self.assert_merged(code, log, 2)
        # A pod more than there are legs is none of the plan.
        self.assertEqual(self.pod(job, 2)[0], 2)

    def test_kubernetes_starts_nothing_without_items(self):
        self.repository(["a"])
        self.assertEqual(self.plan("--per-path", "absent/*", "--matrix", "k8s", *CLAIMS), "")

    # --- The documentation ---

    def shown(self, kind, begins):
        """The block of the documentation with these first words."""
        blocks = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        (text,) = [text for text in blocks if text.startswith(begins)]
        return text

    def test_the_pipeline_of_gitlab(self):
        text = self.shown("yaml", "# .gitlab-ci.yml")
        pipeline = yaml.safe_load(text)
        self.checked("vendor.gitlab-ci", json.dumps(pipeline))
        self.repository(["a", "b"])
        planner = pipeline["plan"]
        environment = {"GITLAB_CI": "true", "CI_PIPELINE_ID": "77", "CI_JOB_NAME": "plan", "CI_JOB_ID": "1"}
        code, log = self.shell("\n".join(planner["script"]), self.project, **environment)
        self.assertEqual(code, 0, log)
        for path in planner["artifacts"]["paths"]:
            self.assertTrue((self.project / path).exists(), path)
        (include,) = pipeline["legs"]["trigger"]["include"]
        self.assertEqual(include["job"], "plan")
        legs = self.checked("vendor.gitlab-ci", (self.project / include["artifact"]).read_text())
        self.assertEqual(legs["default"]["image"], planner["image"])
        self.assertEqual(legs[".leg"]["needs"], [{"pipeline": "77", "job": "plan"}])

    def test_the_pipeline_of_buildkite(self):
        pipeline = yaml.safe_load(self.shown("yaml", "# .buildkite"))
        self.checked("vendor.buildkite", json.dumps(pipeline))
        self.repository(["a", "b"])
        (step,) = pipeline["steps"]
        environment = {"BUILDKITE": "true", "BUILDKITE_BUILD_NUMBER": "9", "BUILDKITE_JOB_ID": "planner"}
        code, log = self.shell(step["command"], self.project, **environment)
        self.assertEqual(code, 0, log)
        self.assertTrue((self.store / "planner/plan.json").exists())
        group, _ = json.loads((self.directory / "legs.json").read_text().replace("$$", "$"))["steps"]
        # Such a leg finds the plan. It fails for what it changes.
        code, log = self.buildkite_step(group["steps"][0])
        self.assertEqual(code, 1, log)

    def test_the_commands_of_kubernetes(self):
        (plan, create) = self.shown("console", "$ ll-loop plan tidy --per-path 'packages/*' --matrix k8s").splitlines()
        (merge,) = self.shown("console", "$ ll-loop merge").splitlines()
        (self.tools / "kubectl").write_text(f'#!/bin/sh\n[ "$1 $2" = "create -f" ] && cp "$3" {self.directory}/created\n')
        (self.tools / "kubectl").chmod(0o755)
        self.repository(["a"])
        for command in (plan, create):
            code, log = self.shell(command.removeprefix("$ "), self.project)
            self.assertEqual(code, 0, log)
        _, job = json.loads((self.directory / "created").read_text())["items"]
        reports = self.directory / "reports" / job["metadata"]["name"] / "0"
        run = f"ll-loop run --plan plan.json --leg index:0 --on-change report --ci --report-dir '{reports}'"
        self.assertEqual(self.shell(run, self.clone_with("plan.json"))[0], 0)
        merge = merge.removeprefix("$ ").replace("/reports/", f"{self.directory}/reports/")
        code, log = self.shell(merge, self.project)
        self.assert_merged(code, log, 1)

    def clone_with(self, file):
        clone = self.clone()
        shutil.copy(self.project / file, clone)
        return clone

    def test_the_commands_of_plain_machines(self):
        self.repository(["a", "b", "c"])
        text = self.shown("sh", "ll-loop plan tidy --per-path 'packages/*' --matrix json")
        code, log = self.shell(text, self.project)
        self.assertEqual(code, 1, log)
        for package in "abc":
            (self.project / "packages" / package / "state").write_text("ok\n")
        self.git("commit", "--all", "--quiet", "--message", "Mended")
        for left in ("out", "merged", "l01", "l02", "l03"):
            shutil.rmtree(self.directory / left, ignore_errors=True)
        code, log = self.shell(text, self.project)
        self.assert_merged(code, log, 3)

    def test_more_arguments_and_the_lock_of_the_page(self):
        self.repository(["api", "web"])
        code, log = self.shell(self.shown("sh", "ll-loop plan tidy --per-path 'packages/*' --matrix gitlab"), self.project)
        self.assertEqual(code, 0, log)
        (self.project / "legs.yml").unlink()
        command, *printed = self.shown("console", "$ ll-loop plan tidy --per-path 'packages/*' --partition").splitlines()
        done = subprocess.run(
            ["bash", "-c", command.removeprefix("$ ")], cwd=self.project, env=self.environment(), capture_output=True, text=True
        )
        self.assertEqual(done.stdout.splitlines(), printed)

    # --- The command line ---

    def test_what_a_system_has_no_place_for_is_refused(self):
        self.repository(["a"])
        plan = lambda *arguments: self.plan("--per-path", "packages/*", *arguments, code=2)  # noqa: E731
        self.assertIn("--repo-claim", plan("--matrix", "k8s"))
        self.assertIn("`--claim`", plan("--matrix", "gitlab", "--claim", "x"))
        self.assertIn("`--image`", plan("--matrix", "buildkite", "--image", "x"))
        self.assertIn("`--run-args`", plan("--matrix", "json", "--run-args", "--strict"))
        for args in ("a 'b", "--context a=b # c"):
            self.assertIn("--run-args", plan("--matrix", "gitlab", "--run-args", args))
        self.assertIn("--matrix", plan("--lock", "github", "--matrix", "json"))
        self.assertIn("--changed-since", plan("--lock", "github", "--changed-since", "HEAD"))
        self.assertFalse((self.project / "plan.json").exists())
        # As the action names loops.
        self.plan("--per-path", "packages/*", "--", "tidy")

    def test_the_jobs_go_to_a_file_that_is_no_change(self):
        self.repository(["a"])
        for _ in range(2):
            self.assertEqual(self.jobs("gitlab", "--jobs", "legs.yml"), "")
        self.checked("vendor.gitlab-ci", (self.project / "legs.yml").read_text())

    def test_a_lock_is_a_part_of_a_workflow(self):
        self.repository(HOSTILE)
        text = self.plan("--per-path", "packages/*", "--lock", "github")
        group = yaml.safe_load(text)["concurrency"]["group"]
        self.assertRegex(group, r"^ll-loop-[0-9a-f]{16}-\$\{\{ matrix\.leg \}\}$")
        self.assertEqual(yaml.safe_load(text)["concurrency"]["queue"], "max")
        one = self.plan("--each", "path=packages/$HOME", "--lock", "github")
        self.assertRegex(yaml.safe_load(one)["concurrency"]["group"], r"^ll-loop-[0-9a-f]{16}$")
