"""Fan-out where every job is a container of its own: what a plan, its legs, the merge and a delivery share is what is mounted,
and the pods of an Indexed Job are made from the manifest that `plan --matrix k8s` prints."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import uuid
from pathlib import Path

import kubernetes_validate

from docker_action import IMAGE, engine_with_image
from engine import LABEL

PACKAGES = ("api", "core", "docs", "ui", "web")
# Whatever a job writes to `/out` outlives it. `prepared` and `fixed` tell how often which work was done.
LOOP = """\
name: tidy
description: one package
initial: prepare
parameters: {path: {type: string}}
scope: ['${context.path}']
states:
  prepare: {action: 'mkdir -p /out && echo x >>/out/prepared', next: check}
  check: {action: 'test "$(cat ${context.path:shell}/state)" = ok || exit 1; if test -e ${context.path:shell}/slow && test ! -e /out/go; then touch /out/waits; sleep 300; fi', on_yes: done, on_no: fix}
  fix: {action: 'test ! -e ${context.path:shell}/hopeless && echo ok >${context.path:shell}/state && echo x >>/out/fixed', on_yes: check, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
"""
# Somebody else than the user of the container, as volumes belong to.
STRANGER = 1234


def setUpModule():
    global engine
    engine, _ = engine_with_image(unittest.addModuleCleanup)


class Containers(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ll-fan-", dir="/var/tmp")
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        os.chmod(self.directory, 0o755)
        self.clones = 0

    def git(self, *arguments, cwd=None):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "safe.directory=*"]
        done = subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def repository(self, broken=(), **files):
        """A bare repository with the loop and the packages, of which these are to be fixed."""
        work = self.directory / "work"
        content = {".loops/tidy.yaml": LOOP, **{f"packages/{name}/state": "ok\n" for name in PACKAGES}}
        content |= {f"packages/{name}/state": "bad\n" for name in broken}
        for path, text in (content | files).items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(text)
        self.git("init", "--quiet", "--initial-branch=main", work)
        self.git("add", "--all", cwd=work)
        self.git("commit", "--quiet", "--message", "First", cwd=work)
        self.server = self.directory / "server.git"
        self.git("clone", "--quiet", "--bare", work, self.server)

    def checkout(self):
        """A fresh checkout, as every job has it."""
        self.clones += 1
        clone = self.directory / f"checkout-{self.clones}"
        self.git("clone", "--quiet", self.directory / "work", clone)
        self.git("remote", "set-url", "origin", "/server.git", cwd=clone)
        return clone

    def folder(self, name):
        path = self.directory / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def container(self, arguments, mounts, workdir, entrypoint=None, env=None, image=IMAGE, options=()):
        """Starts a container of the image; nothing of it is kept but what is mounted."""
        name = f"ll-fan-{uuid.uuid4().hex[:12]}"
        variables = [word for pair in (env or {}).items() for word in ("--env", "=".join(pair))]
        volumes = [word for path, target in mounts for word in ("--volume", f"{path}:{target}")]
        entry = ["--entrypoint", entrypoint] if entrypoint else []
        process = engine.popen(
            "run", "--rm", "--name", name, "--label", LABEL, "--network", "none", "--workdir", workdir, *variables,
            *volumes, *options, *entry, image, *arguments,
        )  # fmt: skip
        self.addCleanup(process.stdout.close)
        self.addCleanup(engine, "rm", "--force", name, check=False)
        return name, process

    def changed(self, branch, base="main"):
        return self.git("diff", "--name-only", base, branch, cwd=self.server).split()

    def result(self, name):
        return json.loads((self.directory / name / "result.json").read_text())

    def ended(self, process):
        log, _ = process.communicate(timeout=240)
        return process.returncode, log

    def wait_for(self, file, process):
        until = time.monotonic() + 120
        while not file.exists():
            if process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"{file.name} did not come: {process.stdout.read()}")
            time.sleep(0.05)


class Chain(Containers):
    """Plan, legs, merge and delivery as jobs of any system that starts containers."""

    def job(self, *arguments, out, more=()):
        mounts = [(self.checkout(), "/checkout"), (self.folder(out), "/out"), *more]
        return self.container(arguments, mounts, "/checkout", env={"CI": "true"})

    def run_job(self, *arguments, out, more=(), code=0):
        found, log = self.ended(self.job(*arguments, out=out, more=more)[1])
        self.assertEqual(found, code, log)
        return log

    def plan(self):
        self.run_job("plan", "tidy", "--per-path", "packages/*", "--legs", "5", "-o", "/out/plan.json", out="plan")
        self.planned = [(self.directory / "plan", "/plan:ro")]
        return [leg["key"] for leg in json.loads((self.directory / "plan/plan.json").read_text())["legs"]]

    def leg(self, *which, out):
        arguments = ["run", "--plan", "/plan/plan.json", *which, "--ci", "--on-change", "report", "--report-dir", "/out/report"]
        more = [*self.planned, (self.folder("merged"), "/merged:ro")]
        return self.job(*arguments, out=out, more=more)

    def merge(self, *directories, out, code):
        given = [(self.directory / name, f"/in/{name}:ro") for name in directories]
        arguments = ["merge", "--plan", "/plan/plan.json", "--ci", "--report-dir", "/out", "/in"]
        return self.run_job(*arguments, out=out, more=[*self.planned, *given], code=code)

    def test_five_containers_make_one_fix_that_is_delivered(self):
        self.repository(broken=["api", "web"])
        legs = self.plan()
        self.assertEqual(len(legs), 5)
        running = [self.leg("--leg", key, out=f"legs/{key}")[1] for key in legs]
        for process in running:
            code, log = self.ended(process)
            self.assertEqual(code, 0, log)
        log = self.merge("legs", out="merged", code=0)
        self.assertIn("5 of 5 items verified", log)
        more = [(self.directory / "merged", "/merged:ro"), (self.server, "/server.git")]
        # The checkout and the server belong to whoever made them.
        self.run_job("deliver", "/merged", "--to", "branch", "--remote", "origin", out="delivered", more=more)
        branches = self.git("for-each-ref", "--format=%(refname)", "refs/heads", cwd=self.server).split()
        fixed = [branch for branch in branches if branch != "refs/heads/main"]
        self.assertEqual(len(fixed), 1, branches)
        self.assertEqual(self.changed(fixed[0]), ["packages/api/state", "packages/web/state"])
        self.assertEqual(self.git("show", f"{fixed[0]}:packages/web/state", cwd=self.server), "ok")

    def test_a_container_that_is_killed_is_missing_until_another_one_runs_its_leg(self):
        self.repository(**{"packages/docs/slow": ""})
        legs = self.plan()
        for key in legs:
            name, process = self.leg("--leg", key, out=f"legs/{key}")
            if key == "l03":
                self.wait_for(self.directory / "legs/l03/waits", process)
                engine("kill", "--signal", "KILL", name)
                code, log = self.ended(process)
                self.assertEqual(code, 137, log)
                # What it wrote is lost with its machine.
                shutil.rmtree(self.directory / "legs/l03")
            else:
                code, log = self.ended(process)
                self.assertEqual(code, 0, log)
        log = self.merge("legs", out="merged", code=4)
        self.assertIn("leg_missing: l03 (packages/docs)", log)
        self.folder("again")
        (self.directory / "again/go").touch()
        code, log = self.ended(self.leg("--rerun", "/merged", out="again")[1])
        self.assertEqual(code, 0, log)
        self.assertIn("item 1 of 1", log)
        self.assertIn("5 of 5 items verified", self.merge("merged", "again", out="whole", code=0))
        attempts = {item["leg"]: item["attempt"] for item in self.result("whole")["items"]}
        self.assertEqual(attempts, {key: 2 if key == "l03" else 1 for key in legs})


class IndexedJob(Containers):
    """The pods of the Job, each an init container and a container with what the manifest mounts and sets."""

    def manifest(self, *arguments):
        clone = self.checkout()
        done = subprocess.run(
            [os.environ["LL_LOOP_BIN"], "plan", "tidy", "--per-path", "packages/*", "--matrix", "k8s", "--image", IMAGE,
             "--repo-claim", "checkout", "--claim", "reports", *arguments],
            cwd=clone, capture_output=True, text=True, env={"PATH": os.environ["PATH"], "HOME": str(self.directory)},
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        config, job = objects = json.loads(done.stdout)["items"]
        for one in objects:
            kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
        for name, text in config["data"].items():
            (self.folder("config") / name).write_text(text)
        for path in [self.server, *self.server.rglob("*")]:
            os.chown(path, STRANGER, STRANGER)
        self.claims = {"checkout": self.server, "reports": self.folder("reports")}
        self.job = job["spec"]
        self.volumes = {volume["name"]: volume for volume in self.job["template"]["spec"]["volumes"]}
        self.pods = 0
        return job

    def mounted(self, mount, index, work):
        """Where a volume is on this machine, and where it is in the container."""
        volume = self.volumes[mount["name"]]
        if "configMap" in volume:
            path, options = self.directory / "config", ":ro"
        elif "emptyDir" in volume:
            path, options = work, ""
        else:
            claim = volume["persistentVolumeClaim"]
            path, options = self.claims[claim["claimName"]], ":ro" if claim.get("readOnly") else ""
        if "subPathExpr" in mount:
            mode = path.stat().st_mode & 0o7777
            for name in self.expanded(mount["subPathExpr"], index).split("/"):
                path = path / name
                if not path.exists():
                    # As the kubelet does: with the mode of the volume, and, by that, its group.
                    path.mkdir()
                    path.chmod(mode)
        return path, mount["mountPath"] + (":ro" if mount.get("readOnly") else options)

    def expanded(self, text, index):
        """`$(NAME)` and `$$`, as the kubelet reads them."""
        variables = {"JOB_COMPLETION_INDEX": str(index)}
        return re.sub(r"\$\$|\$\((\w+)\)", lambda found: "$" if found[0] == "$$" else variables[found[1]], text)

    def start(self, container, index, work):
        words = [self.expanded(word, index) for word in [*container["command"], *container.get("args", [])]]
        mounts = [self.mounted(mount, index, work) for mount in container["volumeMounts"]]
        # `/out` is not in the manifest: by it the loop of the tests says where it is.
        out = self.folder(f"out-{index}")
        out.chmod(0o777)
        mounts.append((out, "/out"))
        env = {variable["name"]: self.expanded(variable["value"], index) for variable in container.get("env", [])}
        env["JOB_COMPLETION_INDEX"] = str(index)
        place, image = container.get("workingDir", "/"), container["image"]
        return self.container(words[1:], mounts, place, words[0], env, image, self.security(container))

    def security(self, container):
        """The options of `docker run` for what the contexts of the pod and of a container say."""
        pod, own = self.job["template"]["spec"].get("securityContext", {}), container.get("securityContext", {})
        options = []
        if "runAsUser" in pod:
            options += ["--user", f"{pod['runAsUser']}:{pod.get('runAsGroup', 0)}"]
        if "fsGroup" in pod:
            options += ["--group-add", str(pod["fsGroup"])]
        if own.get("allowPrivilegeEscalation") is False:
            options += ["--security-opt", "no-new-privileges"]
        if own.get("readOnlyRootFilesystem"):
            options.append("--read-only")
        return options + [word for name in own.get("capabilities", {}).get("drop", []) for word in ("--cap-drop", name)]

    def pod(self, index):
        """Starts a pod: its container, after those that come before it."""
        self.pods += 1
        work = self.folder(f"pod-{self.pods}")
        work.chmod(0o777)
        template = self.job["template"]["spec"]
        for container in template["initContainers"]:
            code, log = self.ended(self.start(container, index, work)[1])
            self.assertEqual(code, 0, log)
        (container,) = template["containers"]
        return self.start(container, index, work)

    def is_final(self, code):
        rule = next(rule for rule in self.job["podFailurePolicy"]["rules"] if rule["action"] == "FailIndex")
        return code in rule["onExitCodes"]["values"]

    def merged(self, code):
        directories = sorted(self.claims["reports"].iterdir())
        arguments = ["merge", "--plan", "/plan/plan.json", "--ci", "--report-dir", "/out", "/in"]
        mounts = [
            (self.checkout(), "/checkout"), (self.directory / "config", "/plan:ro"), (self.folder("merged"), "/out"),
            *[(path, f"/in/{path.name}:ro") for path in directories],
        ]  # fmt: skip
        found, log = self.ended(self.container(arguments, mounts, "/checkout", env={"CI": "true"})[1])
        self.assertEqual(found, code, log)
        return log

    def patched(self):
        patch = (self.directory / "merged/changes.patch").read_text()
        return re.findall(r"^diff --git a/(\S+)", patch, re.MULTILINE)

    def done(self, work, index):
        """How often the pods of an index did this."""
        return (self.directory / f"out-{index}" / work).read_text().count("x")

    def test_every_index_is_a_leg_and_all_of_them_are_one_result(self):
        self.repository(broken=["core", "web"])
        job = self.manifest("--legs", "5", "--run-args", "--on-change report")
        self.assertEqual((job["spec"]["completions"], job["spec"]["completionMode"]), (5, "Indexed"))
        pods = [self.pod(index)[1] for index in range(job["spec"]["completions"])]
        for process in pods:
            code, log = self.ended(process)
            self.assertEqual(code, 0, log)
        self.assertIn("5 of 5 items verified", self.merged(0))

    def test_pods_of_a_cluster_that_lets_nobody_be_root(self):
        self.repository(broken=["core", "web"])
        self.manifest("--legs", "2", "--run-args", "--on-change report")
        # What its administrator, or Kustomize, adds: the profile `restricted`, and OpenShift's user without a name.
        template = self.job["template"]["spec"]
        template["securityContext"] = {"runAsNonRoot": True, "runAsUser": 1000680000, "runAsGroup": 0, "fsGroup": 2000}
        for container in [*template["initContainers"], *template["containers"]]:
            container["securityContext"] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
        reports = self.claims["reports"]
        os.chown(reports, 0, 2000)
        reports.chmod(0o2770)
        for index in range(2):
            code, log = self.ended(self.pod(index)[1])
            self.assertEqual(code, 0, log)
            self.assertEqual((self.directory / f"out-{index}/prepared").stat().st_uid, 1000680000)
        self.assertIn("5 of 5 items verified", self.merged(0))
        self.assertEqual(self.patched(), ["packages/core/state", "packages/web/state"])

    def test_an_item_that_fails_is_not_tried_again(self):
        self.repository(broken=["web"], **{"packages/web/hopeless": ""})
        self.manifest("--legs", "5")
        codes = [self.ended(self.pod(index)[1])[0] for index in range(5)]
        self.assertEqual([code for code in codes if code], [1])
        self.assertTrue(self.is_final(1))
        self.assertIn("4 of 5 items verified", self.merged(1))

    def test_the_pod_that_takes_the_place_of_another_goes_on_where_that_was_ended(self):
        self.repository(**{"packages/docs/slow": ""})
        self.manifest("--legs", "5")
        for index in (0, 1, 3, 4):
            self.assertEqual(self.ended(self.pod(index)[1])[0], 0)
        name, process = self.pod(2)
        self.wait_for(self.directory / "out-2/waits", process)
        engine("stop", "--time", "60", name)
        code, log = self.ended(process)
        self.assertFalse(code == 0 or self.is_final(code), f"{code}: {log}")
        (self.directory / "out-2/go").touch()
        code, log = self.ended(self.pod(2)[1])
        self.assertEqual(code, 0, log)
        self.assertEqual(self.done("prepared", 2), 1, f"what was done is not done again: {log}")
        self.assertIn("5 of 5 items verified", self.merged(0))

    def test_the_pod_that_takes_the_place_of_a_killed_one_goes_on_from_its_checkpoint(self):
        self.repository(broken=["api", "docs"], **{"packages/docs/slow": ""})
        self.manifest("--legs", "2", "--run-args", "--on-change report --checkpoint-every 1ms")
        first, _ = json.loads((self.directory / "config/plan.json").read_text())["legs"]
        # It is killed in its second item, after the fix of that.
        self.assertEqual([re.search(r"packages-(\w+)-", item)[1] for item in first["items"]], ["api", "docs", "web"])
        other = self.pod(1)[1]
        name, process = self.pod(0)
        self.wait_for(self.directory / "out-0/waits", process)
        engine("kill", "--signal", "KILL", name)
        code, log = self.ended(process)
        self.assertEqual(code, 137, log)
        self.assertEqual(self.ended(other)[0], 0)
        (self.directory / "out-0/go").touch()
        code, log = self.ended(self.pod(0)[1])
        self.assertEqual(code, 0, log)
        self.assertEqual((self.done("prepared", 0), self.done("fixed", 0)), (3, 2), f"what was done is not done again: {log}")
        self.assertIn("5 of 5 items verified", self.merged(0))
        self.assertEqual(self.patched(), ["packages/api/state", "packages/docs/state"])

    def test_the_pod_that_takes_the_place_of_a_killed_one_begins_anew(self):
        self.repository(**{"packages/docs/slow": ""})
        self.manifest("--legs", "5")
        name, process = self.pod(2)
        self.wait_for(self.directory / "out-2/waits", process)
        engine("kill", "--signal", "KILL", name)
        code, log = self.ended(process)
        self.assertEqual(code, 137, log)
        self.assertFalse(self.is_final(code))
        self.assertIn("leg_missing", self.merged(4))
        (self.directory / "out-2/go").touch()
        for index in range(5):
            self.assertEqual(self.ended(self.pod(index)[1])[0], 0)
        # Its journal was lost with its machine.
        self.assertEqual(self.done("prepared", 2), 2)
        self.assertIn("5 of 5 items verified", self.merged(0))


if __name__ == "__main__":
    unittest.main()
