"""The steps of deliver/action.yml, executed as the runner executes them, with a stand-in for the program."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

from runner import ROOT, TOKEN, Runner
from test_run import HOSTILE

# Writes its arguments and environment to a file, and says what was delivered.
STAND_IN = """#!PYTHON
import json, os, sys
with open(RECORD + "-".join(["", *sys.argv[2:]]) * (sys.argv[1] == "action"), "w") as file:
    json.dump({"argv": sys.argv[1:], "env": dict(os.environ)}, file)
if "STAND_IN_EXIT" in os.environ and sys.argv[1] != "action":
    sys.exit(int(os.environ["STAND_IN_EXIT"]))
with open(os.environ["GITHUB_OUTPUT"], "a") as file:
    file.write("delivered=created\\npr-url=https://x/1\\ncommit=abc\\nsigned=true\\nchecks=approval\\npatch=p\\nbundle-digest=sha256:0\\n")
"""


class Deliver(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ll loop ")
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.runner = Runner(self.directory / "runner")
        self.record = self.directory / "seen"
        program = self.directory / "ll-loop"
        program.write_text(STAND_IN.replace("PYTHON", sys.executable).replace("RECORD", repr(str(self.record))))
        program.chmod(0o755)
        self.env = {"LL_LOOP_BINARY": str(program)}

    def deliver(self, inputs=None, **env):
        return self.runner.run(ROOT / "deliver", {"bundle": "artifact:x", **(inputs or {})}, {**self.env, **env})

    def seen(self):
        return json.loads(self.record.read_text())

    def test_a_pull_request_is_the_default_and_the_token_is_that_of_the_job(self):
        result = self.deliver()
        self.assertEqual(result.code, 0, result.log)
        self.assertEqual(self.seen()["argv"], ["deliver", "--to=pr", "--", "artifact:x"])
        self.assertEqual(self.seen()["env"]["LL_TOKEN"], TOKEN)
        self.deliver({"token": "another"})
        self.assertEqual(self.seen()["env"]["LL_TOKEN"], "another")
        self.assertEqual(self.seen()["env"]["GITHUB_TOKEN"], TOKEN, "artifacts are read with it")

    def test_without_a_bundle_it_is_that_of_the_run_of_the_workflow(self):
        self.runner.run(ROOT / "deliver", {}, self.env)
        self.assertEqual(self.seen()["argv"][-1], "run:4711")

    def test_the_outputs_are_those_of_the_program(self):
        result = self.deliver()
        self.assertEqual(
            result.outputs,
            {
                "delivered": "created", "pr-url": "https://x/1", "commit": "abc", "signed": "true", "checks": "approval",
                "patch": "p", "bundle-digest": "sha256:0",
            },
        )  # fmt: skip

    def test_every_input_becomes_its_option(self):
        self.deliver(
            {
                "to": "commit", "base": "release/1", "require-signed": "true", "unverified": "true", "allow-judges": "true",
                "accept-no-checks": "true", "dry-run": "true", "allow-path": "Cargo.lock\n\nsub dir/yarn.lock\n", "report-dir": "kept",
                "allow-secret": "docs/a.md:3\n\nsub dir/b:c:12\n",
                "lock": "git=mirror",
            }
        )  # fmt: skip
        self.assertEqual(
            self.seen()["argv"],
            [
                "deliver", "--to=commit", "--base=release/1", "--lock=git=mirror", "--queue", "--report-dir=kept", "--require-signed",
                "--unverified", "--allow-judges", "--accept-no-checks", "--dry-run", "--allow-path=Cargo.lock",
                "--allow-path=sub dir/yarn.lock",
                "--allow-secret=docs/a.md:3", "--allow-secret=sub dir/b:c:12", "--", "artifact:x",
            ],
        )  # fmt: skip
        self.deliver({"require-signed": "false"})
        self.assertEqual(self.seen()["argv"], ["deliver", "--to=pr", "--", "artifact:x"])

    def test_no_input_is_more_than_a_word(self):
        for value in HOSTILE:
            with self.subTest(value=value):
                result = self.deliver({"bundle": value, "base": value, "lock": value, "report-dir": value})
                self.assertEqual(result.code, 0, result.log)
                locked = [f"--lock={value}", "--queue"]
                words = ["deliver", "--to=pr", f"--base={value}", *locked, f"--report-dir={value}", "--", value]
                self.assertEqual(self.seen()["argv"], words)
        self.assertEqual(list(self.directory.rglob("pwned")), [])

    def test_a_switch_is_true_or_false(self):
        result = self.deliver({"unverified": "yes"})
        self.assertEqual(result.code, 2)
        self.assertIn("the input `unverified` is neither `true` nor `false`", result.log)
        self.assertFalse(self.record.exists())

    def test_nobody_waits_for_what_does_not_come(self):
        undelivered = Path(f"{self.record}-undelivered")
        run = "$(touch pwned)"
        self.deliver({"run-id": run})
        self.deliver({}, STAND_IN_EXIT="69")
        self.deliver({"run-id": run, "dry-run": "true"}, STAND_IN_EXIT="69")
        self.assertFalse(undelivered.exists())
        self.assertEqual(self.deliver({"run-id": run, "token": "of an app"}, STAND_IN_EXIT="69").code, 69)
        seen = json.loads(undelivered.read_text())
        self.assertEqual(seen["argv"], ["action", "undelivered"])
        self.assertEqual((seen["env"]["INPUT_RUN"], seen["env"]["LL_TOKEN"]), (run, TOKEN))
        self.assertEqual(list(self.directory.rglob("pwned")), [])

    def test_a_refusal_is_the_result_of_the_step(self):
        self.assertEqual(self.deliver(STAND_IN_EXIT="5").code, 5)
