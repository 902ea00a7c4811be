"""The step of action.yml that runs the loop, executed as the runner executes it.

A stand-in for the program, and one for docker, write down what they were given; the last tests use the real program.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from runner import ROOT, TOKEN, Runner, wait_for

# Writes its arguments and environment to a file, waits if told to, and ends as told. Signals are written down too.
STAND_IN = """#!PYTHON
import json, os, signal, sys, time
if sys.argv[1:4] in (["action", "contain", "--"], ["action", "save", "--"]):
    os.execvp(sys.argv[4], sys.argv[4:])
record = RECORD + {"rm": "-rm", "save": "-save", "continue": "-continue", "unstored": "-unstored"}.get(sys.argv[-1] if sys.argv[1] != "rm" else "rm", "")
seen = {"argv": sys.argv[1:], "env": dict(os.environ), "pid": os.getpid()}
def save():
    with open(record + ".new", "w") as file:
        json.dump(seen, file)
    os.rename(record + ".new", record)
def stop(number, _):
    seen["signal"] = number
    save()
    sys.exit(128 + number)
signal.signal(signal.SIGINT, stop)
signal.signal(signal.SIGTERM, stop)
if os.environ.get("GITHUB_OUTPUT") and sys.argv[1:] == ["action"]:
    with open(os.environ["GITHUB_OUTPUT"], "a") as file:
        file.write("run-id=x-1\\nhandoff=" + os.environ.get("STAND_IN_HANDOFF", "false") + "\\n")
        stored = "ACTIONS_RUNTIME_TOKEN" in os.environ
        is_known = stored or os.environ["INPUT_UPLOAD"] == "true"
        file.write("report-dir=.loops/.running/x.report\\nartifact-name=" + "ll-loop-x" * is_known + "\\n")
        file.write("resume-from=" + "artifact:ll-loop-x" * is_known + "\\n")
        if is_known and not stored:
            file.write("upload-name=ll-loop-x\\n")
        if "STAND_IN_KILLED" not in os.environ:
            file.write("outcome=failure\\n")
    if "STAND_IN_PAGE" in os.environ:
        os.makedirs(".loops/.running/x.report", exist_ok=True)
        page = ".loops/.running/x.report/report.html"
        if os.environ["STAND_IN_PAGE"] == "link":
            os.symlink("/etc/hostname", page)
        else:
            open(page, "w").write("<!doctype html>")
if sys.argv[1:] == ["action", "save"] and "ACTIONS_RUNTIME_TOKEN" in os.environ:
    with open(os.environ["GITHUB_OUTPUT"], "a") as file:
        file.write("stored=true\\n")
if sys.argv[1:] == ["action", "unstored"] and os.environ["INPUT_HANDOFF"] == "true":
    with open(os.environ["GITHUB_OUTPUT"], "a") as file:
        file.write("exit-code=4\\n")
save()
if sys.argv[1] != "rm":
    time.sleep(float(os.environ.get("STAND_IN_SLEEP", "0")))
sys.exit(int(os.environ.get("STAND_IN_EXIT", "0")))
"""

HOSTILE = [
    "plain",
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "a\nb\n\n::error::c",
    "$HOME ${PATH} $$ \\ \\\\ %s %0A !! * ? [a] {a,b} ~ # ; & | < > ( )",
    "--privileged",
    "-v /:/host",
    " leading and trailing ",
    "ünïcödé ✗ \U0001f600",
]


class RunStep(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ll, loop ")  # a comma too: docker's mounts are CSV
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.runner = Runner(self.directory / "runner")
        self.program = self.stand_in("ll-loop")
        self.env = {"LL_LOOP_BINARY": str(self.program)}

    def stand_in(self, name):
        path = self.directory / "bin" / name
        path.parent.mkdir(exist_ok=True)
        record = str(self.directory / f"seen-{name}")
        path.write_text(STAND_IN.replace("PYTHON", sys.executable).replace("RECORD", repr(record)))
        path.chmod(0o755)
        return path

    def seen(self, name="ll-loop"):
        return json.loads((self.directory / f"seen-{name}").read_text())

    def run_action(self, inputs=None, during=None, **env):
        return self.runner.run(ROOT, {"loop": "x", **(inputs or {})}, {**self.env, **env}, during)

    def interrupt(self, name, number):
        """Sends the signal, as the runner does, to the one process it started."""

        def during(step_id, process):
            if step_id == "run":
                wait_for(self.directory / f"seen-{name}")
                os.kill(process.pid, number)
                self.process = process

        return during


class OnTheRunner(RunStep):
    def test_the_program_is_called_with_its_one_argument(self):
        self.run_action()
        self.assertEqual(self.seen()["argv"], ["action"])

    def test_inputs_arrive_byte_for_byte(self):
        names = [
            "loop", "input", "params", "context", "args", "working-directory", "strict", "on-change", "deadline", "lock", "notify", "environment", "report-dir",
            "changed-since", "status", "status-context", "check", "comment", "delivers", "sha", "allow-untrusted", "on-handoff",
            "chain-depth", "max-chain", "upload", "retention-days",
        ]  # fmt: skip
        for value in HOSTILE:
            with self.subTest(value=value):
                self.run_action({name: value for name in names})
                seen = self.seen()
                for name in names:
                    self.assertEqual(seen["env"]["INPUT_" + name.upper().replace("-", "_")], value)
                self.assertEqual(seen["argv"], ["action"])
        self.assertEqual(list(self.directory.rglob("pwned")), [])

    def test_the_exit_code_is_that_of_the_program(self):
        for code in (0, 1, 2, 75, 124):
            self.assertEqual(self.run_action(STAND_IN_EXIT=str(code)).code, code)

    def test_what_the_program_puts_out_is_what_the_action_puts_out(self):
        result = self.run_action(STAND_IN_EXIT="1")
        self.assertEqual(result.outputs["outcome"], "failure")
        self.assertEqual(result.outputs["report-dir"], ".loops/.running/x.report")
        self.assertEqual(result.outputs["junit"], "")

    def test_a_signal_to_the_step_reaches_the_program(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                (self.directory / "seen-ll-loop").unlink(missing_ok=True)
                started = time.monotonic()
                result = self.run_action(during=self.interrupt("ll-loop", number), STAND_IN_SLEEP="20")
                self.assertLess(time.monotonic() - started, 10)
                self.assertEqual(self.seen()["signal"], number)
                self.assertEqual(self.seen()["pid"], self.process.pid, "no shell in between")
                self.assertEqual(result.code, 128 + number)

    def test_the_reports_are_uploaded_whatever_the_outcome(self):
        for code in ("0", "1"):
            result = self.run_action({"retention-days": "3"}, STAND_IN_EXIT=code)
            ((uses, arguments),) = result.uses
            self.assertRegex(uses, r"^actions/upload-artifact@[0-9a-f]{40}$")
            self.assertEqual(arguments["name"], "ll-loop-x")
            self.assertEqual(arguments["path"], ".loops/.running/x.report")
            self.assertEqual(arguments["retention-days"], "3")
            self.assertEqual(arguments["include-hidden-files"], "true", "`.loops` is hidden")

    def test_the_page_is_an_artifact_that_the_summary_links_to(self):
        result = self.run_action({"retention-days": "3"}, STAND_IN_EXIT="1", STAND_IN_PAGE="there")
        _, (uses, arguments) = result.uses
        self.assertRegex(uses, r"^actions/upload-artifact@[0-9a-f]{40}$")
        self.assertEqual((arguments["archive"], arguments["retention-days"]), ("false", "3"))
        page = Path(arguments["path"])
        # The upload action calls the artifact like the file.
        self.assertEqual((page.name, page.read_text()), ("ll-loop-x.html", "<!doctype html>"))
        url = result.outputs["html-url"]
        self.assertRegex(url, "^https://")
        (summary,) = [step.files["GITHUB_STEP_SUMMARY"].read_text() for step in result.steps.values() if step.files["GITHUB_STEP_SUMMARY"].read_text()]
        self.assertEqual(summary, f"\n[The run as a page]({url}), with every step and what it printed\n")

    def test_a_page_that_a_container_replaced_by_a_link_is_not_followed(self):
        self.assertEqual(len(self.run_action(STAND_IN_PAGE="link").uses), 1)

    def test_a_page_that_was_not_stored_has_no_address(self):
        self.runner.outcome_of_uses = "failure"
        self.assertEqual(self.run_action(STAND_IN_PAGE="there").outputs["html-url"], "")
        self.assertEqual(self.run_action({"upload": "false"}, STAND_IN_PAGE="there").uses, [])

    def test_the_reports_are_uploaded_after_a_cancellation(self):
        result = self.run_action(during=self.interrupt("ll-loop", signal.SIGINT), STAND_IN_SLEEP="20")
        self.assertEqual(len(result.uses), 1)

    def test_a_run_that_was_killed_is_saved_before_the_upload(self):
        self.run_action(STAND_IN_EXIT="1")
        self.assertFalse((self.directory / "seen-ll-loop-save").exists(), "a run that ended has its bundle")
        result = self.run_action({"working-directory": "sub dir"}, STAND_IN_EXIT="137", STAND_IN_KILLED="1")
        self.assertEqual((result.code, len(result.uses)), (137, 1))
        seen = self.seen("ll-loop-save")
        self.assertEqual(seen["argv"], ["action", "save"])
        self.assertEqual(seen["env"]["INPUT_RUN"], "x-1")
        self.assertEqual(seen["env"]["INPUT_REPORT_DIR"], ".loops/.running/x.report")
        self.assertEqual(seen["env"]["INPUT_WORKING_DIRECTORY"], "sub dir")
        self.assertEqual((seen["env"]["INPUT_OUTCOME"], seen["env"]["INPUT_UPLOAD_NAME"]), ("", "ll-loop-x"))

    def stored(self, result):
        return result.outputs["artifact-name"], result.outputs["resume-from"]

    def test_what_the_program_stored_is_not_uploaded_again(self):
        result = self.run_action(ACTIONS_RUNTIME_TOKEN="jwt", STAND_IN_EXIT="75", STAND_IN_HANDOFF="true")
        self.assertEqual((result.uses, result.outcomes["unstored"]), ([], "skipped"))
        self.assertEqual(self.stored(result), ("ll-loop-x", "artifact:ll-loop-x"))

    def test_what_was_stored_by_the_program_is_gone_on_with(self):
        inputs = {"on-handoff": "dispatch"}
        self.run_action(inputs, ACTIONS_RUNTIME_TOKEN="jwt", STAND_IN_EXIT="75", STAND_IN_HANDOFF="true")
        self.assertEqual(self.seen("ll-loop-continue")["env"]["INPUT_UPLOAD_OUTCOME"], "success")

    def test_the_outputs_name_what_was_uploaded(self):
        self.assertEqual(self.stored(self.run_action()), ("ll-loop-x", "artifact:ll-loop-x"))
        self.runner.outcome_of_uses = "failure"
        self.assertEqual(self.stored(self.run_action()), ("", ""))
        self.assertEqual(self.stored(self.run_action({"upload": "false"})), ("", ""))

    def test_an_upload_that_failed_is_said(self):
        self.assertEqual(self.run_action(STAND_IN_EXIT="1").outcomes["unstored"], "skipped")
        self.runner.outcome_of_uses = "failure"
        result = self.run_action({"status": "false", "sha": "$(touch pwned)"})
        self.assertEqual(result.outcomes["unstored"], "success")
        seen = self.seen("ll-loop-unstored")
        self.assertEqual(seen["argv"], ["action", "unstored"])
        wanted = {"RUN": "x-1", "UPLOAD_NAME": "ll-loop-x", "HANDOFF": "false", "ON_HANDOFF": "none", "STATUS": "false",
                  "SHA": "$(touch pwned)"}  # fmt: skip
        self.assertEqual({name: seen["env"]["INPUT_" + name] for name in wanted}, wanted)
        self.assertEqual(result.outputs["exit-code"], "")
        result = self.run_action(STAND_IN_EXIT="75", STAND_IN_HANDOFF="true")
        self.assertEqual((result.code, result.outputs["exit-code"]), (75, "4"))
        self.assertEqual(list(self.directory.rglob("pwned")), [])

    def test_nothing_is_uploaded_where_it_is_not_wanted_or_there_is_nothing(self):
        self.assertEqual(self.run_action({"upload": "false"}).uses, [])
        self.assertEqual(self.run_action(LL_LOOP_BINARY="/nowhere").uses, [])

    def test_the_token_is_that_of_the_job_or_the_one_that_is_given(self):
        self.run_action()
        self.assertEqual(self.seen()["env"]["LL_TOKEN"], TOKEN)
        self.run_action({"token": "another"})
        self.assertEqual(self.seen()["env"]["LL_TOKEN"], "another")

    def test_a_handoff_goes_on_in_another_run_after_the_upload(self):
        inputs = {
            "on-handoff": "dispatch", "chain-depth": "2", "max-chain": "5", "sha": "$(touch pwned)",
            "working-directory": "sub dir", "status": "true", "status-context": "a b", "token": "another",
        }  # fmt: skip
        for outcome in ("success", "failure"):
            self.runner.outcome_of_uses = outcome
            result = self.run_action(inputs, STAND_IN_EXIT="75", STAND_IN_HANDOFF="true")
            self.assertEqual(result.code, 75)
            self.assertEqual(len(result.uses), 1)
            seen = self.seen("ll-loop-continue")
            self.assertEqual(seen["argv"], ["action", "continue"])
            self.assertEqual(seen["env"]["LL_TOKEN"], "another")
            self.assertEqual(seen["env"]["INPUT_RUN"], "x-1")
            self.assertEqual(seen["env"]["INPUT_UPLOAD_OUTCOME"], outcome)
            for name in ("chain-depth", "max-chain", "sha", "working-directory", "status", "status-context"):
                self.assertEqual(seen["env"]["INPUT_" + name.upper().replace("-", "_")], inputs[name])
        self.assertEqual(list(self.directory.rglob("pwned")), [])

    def test_a_handoff_whose_files_are_not_uploaded_is_said_to_go_nowhere(self):
        self.run_action({"on-handoff": "dispatch", "upload": "false"}, STAND_IN_EXIT="75", STAND_IN_HANDOFF="true")
        self.assertEqual(self.seen("ll-loop-continue")["env"]["INPUT_UPLOAD_OUTCOME"], "skipped")

    def test_nothing_goes_on_without_a_handoff_or_a_word(self):
        self.run_action({"on-handoff": "dispatch"}, STAND_IN_EXIT="1")
        self.run_action(STAND_IN_EXIT="75", STAND_IN_HANDOFF="true")
        self.assertFalse((self.directory / "seen-ll-loop-continue").exists())

    def test_the_loop_keeps_the_environment_but_our_shell_does_not_run_it(self):
        trap = self.directory / "trap.sh"
        trap.write_text(f"touch {shlex.quote(str(self.directory / 'pwned'))}\n")
        self.run_action(BASH_ENV=str(trap), TOOL_HOME="/opt/tool")
        self.assertEqual(list(self.directory.rglob("pwned")), [])
        self.assertEqual(self.seen()["env"]["BASH_ENV"], str(trap))
        self.assertEqual(self.seen()["env"]["TOOL_HOME"], "/opt/tool")
        self.assertNotIn("LL_BIN", self.seen()["env"], "what is ours stays with us")


class InAContainer(RunStep):
    def setUp(self):
        super().setUp()
        self.stand_in("docker")
        self.env["PATH"] = f"{self.directory}/bin:{os.environ['PATH']}"

    def call(self, inputs=None, **env):
        """What docker is called with to start the container."""
        self.result = self.run_action({"image": "team/tools:1", **(inputs or {})}, **env)
        self.assertTrue((self.directory / "seen-docker").exists(), self.result.log)
        return self.seen("docker")

    def refused(self, inputs, word, **env):
        (self.directory / "seen-docker").unlink(missing_ok=True)
        result = self.run_action({"image": "team/tools:1", **inputs}, **env)
        self.assertEqual(result.code, 1)
        self.assertIn(word, result.log)
        self.assertIn("::error title=ll-loop did not start a container::", result.log)
        self.assertFalse((self.directory / "seen-docker").exists(), "docker was called")

    def test_the_command_line(self):
        argv = self.call({"network": "none"})["argv"]
        self.assertEqual(argv[0], "run")
        self.assertEqual(argv[-2:], ["team/tools:1", "action"])
        options = " ".join(argv)
        self.assertIn(f"--user {os.getuid()}:{os.getgid()}", options)
        self.assertIn("--network none", options)
        self.assertIn("--rm", argv)
        self.assertIn(f"--workdir {self.runner.workspace}", options)
        self.assertNotIn("docker.sock", options)
        self.assertNotIn("--privileged", argv)

    def test_without_a_network_it_is_dockers_default(self):
        self.assertNotIn("--network", self.call()["argv"])

    def test_what_is_mounted(self):
        argv = self.call()["argv"]
        files = self.result.steps["run"].files
        mounts = [argv[at + 1] for at, word in enumerate(argv) if word == "--mount"]
        expected = [
            (self.program, "/usr/local/bin/ll-loop", ",readonly"),
            (self.runner.workspace, self.runner.workspace, ""),
            (None, None, ""),
            (self.runner.temp / "ll-loop", None, ""),
            (None, None, ""),
            (self.runner.event, self.runner.event, ",readonly"),
        ]
        self.assertEqual(len(mounts), len(expected), mounts)
        for mount, (source, target, suffix) in zip(mounts, expected):
            self.assertTrue(mount.startswith('type=bind,"source='), mount)
            self.assertTrue(mount.endswith('"' + suffix), mount)
            if source and target:
                self.assertEqual(mount, f'type=bind,"source={source}","target={target}"{suffix}')
        self.assertNotIn(f'"source={self.runner.temp}"', " ".join(mounts), "the runner's files are out of reach")
        for name, path in files.items():
            self.assertNotIn(str(path), " ".join(argv), name)

    def test_only_the_allow_list_goes_in_and_no_value_stands_in_the_process_list(self):
        secrets = {
            "GITHUB_TOKEN": "ghs_secret",
            "GH_TOKEN": "ghs_secret",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "jwt",
            "ACTIONS_RUNTIME_TOKEN": "jwt",
            "AWS_SECRET_ACCESS_KEY": "aws",
        }
        argv = self.call({"input": "the input"}, **secrets)["argv"]
        passed = [argv[at + 1] for at, word in enumerate(argv) if word == "--env"]
        for name in [*secrets, "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "LL_BIN", "PATH", "BASH_ENV"]:
            self.assertNotIn(name, passed)
        for name in ("INPUT_LOOP", "INPUT_INPUT", "GITHUB_SHA", "GITHUB_ACTIONS", "CI", "RUNNER_OS"):
            self.assertIn(name, passed)
        given = [entry.split("=")[0] for entry in passed if "=" in entry]
        self.assertEqual(given, ["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "HOME", "RUNNER_TEMP"])
        self.assertNotIn("the input", " ".join(argv))

    def test_the_token_for_ll_loop_goes_in_where_there_is_a_network(self):
        call = self.call()
        self.assertIn("LL_TOKEN", call["argv"])
        self.assertEqual(call["env"]["LL_TOKEN"], TOKEN)
        self.assertNotIn(TOKEN, " ".join(call["argv"]))
        self.assertNotIn("LL_TOKEN", self.call({"network": "none"})["argv"])

    def test_variables_that_are_named_go_in(self):
        call = self.call({"env": "DATABASE_URL\n  GITHUB_TOKEN\tA_1"}, DATABASE_URL="postgres://", GITHUB_TOKEN="t")
        for name in ("DATABASE_URL", "GITHUB_TOKEN", "A_1"):
            self.assertIn(name, call["argv"])
        self.assertEqual(call["env"]["DATABASE_URL"], "postgres://")

    def test_inputs_reach_docker_byte_for_byte(self):
        for value in HOSTILE:
            with self.subTest(value=value):
                call = self.call({"input": value, "args": value, "loop": value})
                for name in ("INPUT_INPUT", "INPUT_ARGS", "INPUT_LOOP"):
                    self.assertEqual(call["env"][name], value)
                self.assertEqual(call["argv"][-2:], ["team/tools:1", "action"])
        self.assertEqual(list(self.directory.rglob("pwned")), [])

    def test_an_image_that_is_none_is_refused(self):
        for image in ("--privileged", "-v/:/host", "a b", "$(touch pwned)", "image\n--privileged"):
            self.refused({"image": image}, "is not a reference to an image")
        self.assertEqual(list(self.directory.rglob("pwned")), [])

    def test_a_network_that_is_none_is_refused(self):
        for network in ("--privileged", "container:other", "a b", "none\nhost"):
            self.refused({"network": network}, "is not the name of a network")

    def test_a_variable_name_that_is_none_is_refused(self):
        for names in ("A=b", "--privileged", "$(touch pwned)", "A;B", "a-b"):
            self.refused({"env": names}, "is not the name of an environment variable")

    def test_reports_have_to_stay_in_the_workspace(self):
        self.refused({"report-dir": "/srv/reports"}, "which the container does not see")
        self.call({"report-dir": f"{self.runner.workspace}/reports"})

    def test_a_runner_without_docker_is_refused(self):
        bare = self.directory / "bare"
        bare.mkdir()
        for tool in ("bash", "dirname", "basename", "id", "mkdir", "mktemp", "sed"):
            (bare / tool).symlink_to(shutil.which(tool))
        self.refused({}, "needs docker", PATH=str(bare))

    def test_our_own_image_is_that_of_a_release(self):
        self.refused({"image": "default"}, "this commit of the action is none")

    def test_a_released_action_knows_its_own_image(self):
        digest = "ghcr.io/little-loops/ll-loop@sha256:" + "ab" * 32
        action = self.directory / "action"
        for name in ("setup", "docker"):
            shutil.copytree(ROOT / name, action / name)
        shutil.copy(ROOT / "action.yml", action)
        definition = action / "docker/action.yml"
        lines = definition.read_text().splitlines()
        definition.write_text(
            "\n".join(f"  image: docker://{digest}" if line.startswith("  image: ") else line for line in lines)
        )
        self.runner.run(action, {"loop": "x", "image": "default"}, self.env)
        self.assertEqual(self.seen("docker")["argv"][-2:], [digest, "action"])

    def test_a_signal_to_the_step_reaches_docker(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                (self.directory / "seen-docker").unlink(missing_ok=True)
                during = self.interrupt("docker", number)
                result = self.run_action({"image": "team/tools:1"}, during, STAND_IN_SLEEP="20")
                self.assertEqual(self.seen("docker")["signal"], number)
                self.assertEqual(self.seen("docker")["pid"], self.process.pid, "no shell in between")
                self.assertEqual(result.code, 128 + number)

    def test_what_a_container_left_is_stored_from_outside_where_the_runner_allows_it(self):
        call = self.call({"network": "none"}, ACTIONS_RUNTIME_TOKEN="jwt", ACTIONS_RESULTS_URL="http://x")
        for name in ("ACTIONS_RUNTIME_TOKEN", "ACTIONS_RESULTS_URL"):
            self.assertNotIn(name, call["argv"])

    def test_a_container_left_behind_is_removed_by_its_name(self):
        argv = self.call()["argv"]
        name = argv[argv.index("--name") + 1]
        self.assertEqual(self.seen("docker-rm")["argv"], ["rm", "--force", name])

    def test_without_an_image_docker_is_not_called(self):
        self.run_action()
        self.assertFalse((self.directory / "seen-docker").exists())


class RealProgram(unittest.TestCase):
    """The action as a whole, with the program that was built. tests/run says where it is."""

    def setUp(self):
        self.program = os.environ.get("LL_LOOP_BIN")
        if not self.program:
            self.fail("LL_LOOP_BIN is not set: run `tests/run packaging`, which builds the program")
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.runner = Runner(directory.name)
        (self.runner.workspace / ".loops").mkdir()

    def loop(self, action, done="done"):
        (self.runner.workspace / ".loops/sample.yaml").write_text(
            "name: sample\n"
            "description: A sample\n"
            "initial: check\n"
            "states:\n"
            "  check:\n"
            f"    action: {action}\n"
            "    evaluate: {type: exit_code}\n"
            "    on_yes: done\n"
            "    on_no: failed\n"
            "  done: {terminal: true}\n"
            "  failed: {terminal: true}\n"
        )

    def run_action(self, inputs=None, during=None, **env):
        # Nobody listens there, and nobody is asked: without a token nothing is reported.
        inputs = {"loop": "sample", "token": "", **(inputs or {})}
        return self.runner.run(ROOT, inputs, {"LL_LOOP_BINARY": self.program, **env}, during)


class TheRealProgram(RealProgram):
    def test_a_loop_that_succeeds(self):
        self.loop("touch made")
        result = self.run_action()
        self.assertEqual(result.code, 0, result.log)
        self.assertTrue((self.runner.workspace / "made").exists())
        self.assertEqual(result.outputs["outcome"], "success")
        self.assertEqual(result.outputs["exit-code"], "0")
        self.assertEqual(result.outputs["verified"], "true")
        self.assertEqual(result.outputs["final-state"], "done")
        self.assertTrue((self.runner.workspace / result.outputs["report-dir"]).is_dir())
        self.assertTrue((self.runner.workspace / result.outputs["junit"]).is_file())
        self.assertIn("sample", result.steps["run"].files["GITHUB_STEP_SUMMARY"].read_text())

    def test_a_loop_that_fails(self):
        self.loop("exit 1")
        result = self.run_action()
        self.assertEqual(result.code, 1, result.log)
        self.assertEqual(result.outputs["outcome"], "failure")
        self.assertEqual(len(result.uses), 2, "the reports, and the page as a file of its own")
        self.assertIn("::error", result.log)

    def test_a_loop_that_is_not_there(self):
        result = self.run_action({"loop": "smaple"})
        self.assertEqual(result.code, 2, result.log)

    def test_a_cancellation(self):
        self.loop("touch started && sleep 300")
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                started = self.runner.workspace / "started"
                started.unlink(missing_ok=True)

                def during(step_id, process):
                    if step_id == "run":
                        until = time.monotonic() + 60
                        while not started.exists() and time.monotonic() < until:
                            time.sleep(0.02)
                        self.signalled = time.monotonic()
                        process.send_signal(number)

                result = self.run_action(during=during)
                self.assertLess(time.monotonic() - self.signalled, 10, "the runner kills after ten seconds")
                self.assertEqual(result.code, 128 + number, result.log)
                self.assertEqual(len(result.uses), 2, "the reports are uploaded, and the page as a file of its own")

    def test_words_in_args_are_arguments_and_no_shell_sees_them(self):
        self.loop("exit 1")
        self.run_action({"args": "--max-iterations 2 '$(touch pwned)' ; touch pwned"})
        self.assertFalse((self.runner.workspace / "pwned").exists())

    def test_inputs_reach_the_actions_of_the_loop(self):
        self.loop("""printf '%s' ${context.input:shell} > got""")
        value = HOSTILE[5] + HOSTILE[1]
        result = self.run_action({"input": value})
        self.assertEqual(result.code, 0, result.log)
        self.assertEqual((self.runner.workspace / "got").read_text(), value)
        self.assertFalse((self.runner.workspace / "pwned").exists())

    def test_the_actions_of_the_loop_see_no_token_and_no_file_of_the_runner(self):
        self.loop("env > seen")
        inputs = {"token": TOKEN, "status": "false"}
        self.run_action(inputs, GITHUB_TOKEN="ghs_secret", ACTIONS_ID_TOKEN_REQUEST_TOKEN="jwt", TOOL_HOME="/opt/tool")
        seen = (self.runner.workspace / "seen").read_text()
        self.assertIn("TOOL_HOME=/opt/tool\n", seen)
        self.assertNotIn(TOKEN, seen)
        for name in ("GITHUB_TOKEN", "LL_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT",
                     "GITHUB_STEP_SUMMARY", "GITHUB_STATE", "INPUT_LOOP"):  # fmt: skip
            self.assertNotIn(f"\n{name}=", f"\n{seen}")


# Plays docker: what the container does is a text of Python, which knows what is in the container.
CONTAINER = """#!PYTHON
import os, shutil, socket, subprocess, sys
if sys.argv[1] == "rm":
    open(REMOVED, "a").write(" ".join(sys.argv[1:]) + "\\n")
    if os.path.exists(REMOVED + ".pid"):
        os.killpg(int(open(REMOVED + ".pid").read()), 9)
    sys.exit(0)
given = dict(word.split("=", 1) for word in sys.argv if word.split("=")[0] in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "RUNNER_TEMP"))
def out(**values):
    with open(given["GITHUB_OUTPUT"], "a") as file:
        for name, value in values.items():
            file.write(f"{name.replace('_', '-')}<<EOF\\n{value}\\nEOF\\n")
def the_program():
    inside = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "LL_BIN", "LL_IMAGE", "LL_LEFT"))}
    words = sys.argv[sys.argv.index("team/tools:1") + 1:]
    program = subprocess.Popen([PROGRAM, *words], env={**inside, **given}, start_new_session=True)
    open(REMOVED + ".pid", "w").write(str(program.pid))
    code = program.wait()
    os.remove(REMOVED + ".pid")
    return code
"""


class AContainer(RealProgram):
    """What stands in the container may be anybody's."""

    def play(self, inputs=None, does="sys.exit(the_program())", during=None):
        directory = self.runner.work / "bin"
        directory.mkdir(exist_ok=True)
        self.removed = self.runner.work / "removed"
        text = CONTAINER.replace("PYTHON", sys.executable).replace("REMOVED", repr(str(self.removed)))
        docker = directory / "docker"
        docker.write_text(text.replace("PROGRAM", repr(self.program)) + does)
        docker.chmod(0o755)
        inputs = {"image": "team/tools:1", **(inputs or {})}
        return self.run_action(inputs, during, PATH=f"{directory}:{os.environ['PATH']}")

    def test_what_the_program_left_is_handed_over(self):
        self.loop("touch made")
        result = self.play()
        self.assertEqual(result.code, 0, result.log)
        wanted = {"outcome": "success", "exit-code": "0", "verified": "true", "final-state": "done", "handoff": "false"}
        self.assertEqual({name: result.outputs[name] for name in wanted}, wanted)
        for name in ("report-dir", "junit", "summary"):
            self.assertTrue((self.runner.workspace / result.outputs[name]).exists(), name)
        self.assertRegex(result.outputs["artifact-name"], "^ll-loop-sample-.*-r4711-a1$")
        self.assertIn("sample", result.steps["run"].files["GITHUB_STEP_SUMMARY"].read_text())
        self.assertIn("::group::", result.steps["run"].log)
        self.assertNotIn("not handed over", result.log)
        self.assertEqual(len(result.uses), 2, "the reports, and the page as a file of its own")

    def test_a_failure_is_none_whatever_the_container_says(self):
        self.loop("exit 1")
        forged = "code = the_program()\nout(outcome='success', verified='true', exit_code='0', handoff='true')\nsys.exit(code)"
        result = self.play(does=forged)
        wanted = {"outcome": "failure", "exit-code": "1", "verified": "false", "handoff": "false"}
        self.assertEqual((result.code, {name: result.outputs[name] for name in wanted}), (1, wanted))
        self.assertIn("outputs that are not handed over", result.log)

    def test_only_known_outputs_of_their_kind_go_on(self):
        (self.runner.workspace / "src").mkdir()
        (self.runner.workspace / "src/link").symlink_to("/etc")
        (self.runner.workspace / ".loops/.running").symlink_to("/etc")
        for directory in ("/etc", "../..", ".", "src", "src/link", ".git", ".loops", ".loops/.running", ""):
            forged = f"""out(container="other", stored="true", upload_name="x", artifact_name="ll-loop-of-another-r1-a1", iterations="many",
                run_id="a b", report_dir={directory!r}, junit="/etc/passwd", patch="../../x", summary="src", cost_usd="-inf",
                resume_from="artifact:ll-loop-x-r1-a1", key="$(x)", final_state="a\\x1bb", clean="true")\nsys.exit(0)"""
            result = self.play(does=forged)
            said = {name: value for name, value in result.outputs.items() if value and name != "continued"}
            wanted = {"outcome": "success", "exit-code": "0", "verified": "false", "reused": "false", "handoff": "false"}
            self.assertEqual(said, wanted, directory)
            self.assertEqual(result.uses, [])
            name = result.steps["run"].outputs["container"]
            self.assertRegex(name, "^ll-loop-4711-1-")
            self.assertEqual(self.removed.read_text().splitlines()[-1], f"rm --force {name}")

    def test_the_log_of_a_container_holds_no_command_of_its_own(self):
        forged = "\n".join(
            f"print({line!r})"
            for line in ("::set-output name=container::other", "  ::set-output name=outcome::success", "##[set-output name=a]b",
                         "::add-mask::failure", "::stop-commands::x", "::error::x")
        )  # fmt: skip
        log = self.play(does=forged + "\nprint('::add-path::/x', file=sys.stderr)\nsys.exit(3)").steps["run"].log
        commands = [line for line in log.splitlines() if line.strip().startswith("::") or "##[" in line]
        self.assertEqual([line for line in commands if not line.startswith("::warning")], [], log)

    def test_links_and_pipes_in_the_reports_are_neither_followed_nor_stored(self):
        self.loop("exit 1")
        left = """code = the_program()
import glob
(reports,) = glob.glob(".loops/.history/*/*.report")
os.makedirs(reports + "/deep")
os.symlink("/etc/passwd", reports + "/deep/secret")
os.symlink("/etc", reports + "/etc")
os.remove(reports + "/report.html")
os.symlink("/etc/hostname", reports + "/report.html")
os.mkfifo(reports + "/pipe")
socket.socket(socket.AF_UNIX).bind(os.path.relpath(reports + "/socket"))
sys.exit(code)"""
        result = self.play(does=left)
        reports = self.runner.workspace / result.outputs["report-dir"]
        odd = [path for path in reports.rglob("*") if path.is_symlink() or not (path.is_file() or path.is_dir())]
        self.assertEqual((odd, len(result.uses)), ([], 1), result.log)
        self.assertTrue((reports / "deep").is_dir())

    def test_the_files_that_a_container_leaves_may_be_anything(self):
        for what in ("os.mkfifo(path)", "os.symlink('/etc/hostname', path)", "os.mkdir(path)", "open(path, 'wb').write(b'\\xff<<' * 999)"):
            with self.subTest(what):
                does = f"for path in given['GITHUB_OUTPUT'], given['GITHUB_STEP_SUMMARY']:\n    {what}\nsys.exit(5)"
                result = self.play(does=does)
                self.assertEqual((result.code, result.outputs["outcome"], result.outputs["run-id"]), (5, "blocked", ""))

    def test_how_a_container_ended_that_was_killed_is_never_what_its_files_say(self):
        self.loop("cp .loops/.running/*.unreported kept")
        # The journal of a verified success, and what a process leaves that dies before it reports it.
        forged = """if sys.argv[-1] == "save":
    sys.exit(the_program())
the_program()
import glob, re
for path in glob.glob(".loops/.history/sample/*"):
    os.rename(path, path.replace("history/sample", "running"))
(journal,) = glob.glob(".loops/.running/*.events.jsonl")
run = re.search("sample-[^.]*", journal)[0]
os.rename("kept", journal.replace(".events.jsonl", ".unreported"))
os.remove(given["GITHUB_OUTPUT"])
out(run_id=run, report_dir=f".loops/.running/{run}.report", upload_name="ll-loop-sample-test-r4711-a1")
sys.exit(137)"""
        result = self.play(does=forged)
        wanted = {"outcome": "interrupted", "exit-code": "137", "verified": "false"}
        self.assertEqual({name: result.outputs[name] for name in wanted}, wanted, result.log)
        self.assertEqual(result.code, 137)
        # What it left is stored all the same.
        reports = self.runner.workspace / result.outputs["report-dir"]
        self.assertTrue((reports / "report.html").exists(), result.log)
        self.assertEqual(len(result.uses), 2, "the reports, and the page as a file of its own")

    def test_a_container_that_is_killed_leaves_its_reports(self):
        self.loop("touch started; sleep 300")

        def during(step_id, process):
            if step_id == "run":
                until = time.monotonic() + 60
                while not (self.runner.workspace / "started").exists() and time.monotonic() < until:
                    time.sleep(0.02)
                time.sleep(1)
                process.kill()

        result = self.play(during=during)
        self.assertNotEqual(result.code, 0)
        self.assertNotEqual(result.outputs["run-id"], "")
        self.assertEqual(len(result.uses), 2, result.log)


if __name__ == "__main__":
    unittest.main()
