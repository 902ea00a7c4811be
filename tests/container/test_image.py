"""The image, built from the Dockerfile and run by a real engine with the command the GitHub runner uses."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile
from pathlib import Path

from docker_action import IMAGE, docker_run, engine_with_image
from engine import LABEL, ROOT

sys.path.insert(0, str(ROOT / "tests/packaging"))
from runner import Runner, read_outputs  # noqa: E402

TEAM_IMAGE = "ll-loop-test/team:latest"
# The runner's user: one that the image does not know. Not root itself, so a test that is not root stands in for it.
OWNER = 1001 if os.getuid() == 0 else os.getuid()
# The runner sends SIGINT, SIGTERM 7.5 s later, and kills 2.5 s after that.
GRACE = 10


def setUpModule():
    global engine
    engine, base = engine_with_image(unittest.addModuleCleanup)
    engine.build(
        engine.directory / "probe", TEAM_IMAGE, dockerfile=f"FROM {base}\nRUN echo 'the tools of a team' >/toolchain\n"
    )


def loop(action):
    """A loop of one state. The action is a block, so that it may hold anything."""
    lines = "".join(f"      {line}\n" for line in action.strip().splitlines())
    return (
        "name: sample\n"
        "description: A sample\n"
        "initial: work\n"
        "states:\n"
        "  work:\n"
        "    action: |\n"
        f"{lines}"
        "    on_yes: done\n"
        "    on_no: failed\n"
        "  done:\n"
        "    terminal: true\n"
        "  failed:\n"
        "    terminal: true\n"
    )


def wait_until(met, what, seconds=60):
    until = time.monotonic() + seconds
    while not met():
        if time.monotonic() > until:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


class OnTheEngine(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ll-loop-", dir="/var/tmp")
        self.addCleanup(directory.cleanup)
        os.chmod(directory.name, 0o755)
        self.runner = Runner(directory.name, owner=OWNER if os.getuid() == 0 else None)
        self.workspace = self.runner.workspace
        self.git("init", "--quiet")
        (self.workspace / "README").write_text("A project\n")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "First")
        self.runner.give(self.workspace)

    def git(self, *arguments):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", f"safe.directory={self.workspace}"]
        subprocess.run(["git", *identity, *arguments], cwd=self.workspace, check=True)

    def write_loop(self, text):
        (self.workspace / ".loops").mkdir(exist_ok=True)
        (self.workspace / ".loops/sample.yaml").write_text(text)
        self.runner.give(self.workspace / ".loops")

    def owners(self):
        """Who owns what, of all that the run made."""
        return {str(path): path.lstat().st_uid for path in self.workspace.rglob("*")}

    def assert_all_is_the_runners(self):
        strangers = {path: uid for path, uid in self.owners().items() if uid != OWNER}
        self.assertEqual(strangers, {})

    def assert_state_is_saved(self):
        running = self.workspace / ".loops/.running"
        states = list(running.glob("*.state.json"))
        self.assertEqual(len(states), 1, sorted(running.iterdir()))
        self.assertIn("interrupted", states[0].read_text())


class ContainerAction(OnTheEngine):
    """`uses: little-loops/ll-loop/docker`: process 1, root, in a workspace that is another user's."""

    def command(self, inputs=None, env=None, workspace_options=""):
        given = {"loop": "sample", **(inputs or {})}
        started = docker_run(engine, self.runner, given, ["action"], env, workspace_options=workspace_options)
        self.name, self.environment, self.files = started.name, started.environment, started.files
        return started.command

    def run_action(self, action, **options):
        self.write_loop(loop(action))
        command = self.command(**options)
        done = subprocess.run(
            [engine.client, *map(str, command)], env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
        )  # fmt: skip
        self.outputs = read_outputs(self.files["GITHUB_OUTPUT"])
        self.summary = self.files["GITHUB_STEP_SUMMARY"].read_text()
        return done

    def test_a_loop_that_succeeds(self):
        done = self.run_action("echo it works")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("it works", done.stdout)
        self.assertEqual(self.outputs["outcome"], "success")
        self.assertEqual(self.outputs["exit-code"], "0")
        self.assertIn("sample", self.summary)

    def test_the_loop_that_our_ci_runs(self):
        shutil.copy(ROOT / "tests/container/loops/hello.yaml", self.workspace)
        self.runner.give(self.workspace)
        done = self.run_action("true", inputs={"loop": "hello.yaml"})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex((self.workspace / "hello.txt").read_text(), "^hello [0-9a-f]+$")

    def test_a_loop_that_fails(self):
        done = self.run_action("exit 1")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(self.outputs["outcome"], "failure")
        self.assertEqual(self.outputs["exit-code"], "1")
        self.assertIn("sample", self.summary)

    def test_an_action_that_breaks_has_an_exit_code_of_its_own(self):
        done = self.run_action("exit 7")
        self.assertEqual(done.returncode, 4, done.stdout)
        self.assertEqual(self.outputs["outcome"], "error")

    def test_what_it_puts_out_is_true_outside_of_the_container(self):
        self.run_action("true")
        self.assertTrue((self.workspace / self.outputs["report-dir"]).is_dir(), self.outputs)
        for name in ("junit", "summary"):
            if name in self.outputs:
                self.assertTrue((self.workspace / self.outputs[name]).is_file(), self.outputs)

    def test_a_loop_that_is_not_there(self):
        done = self.run_action("true", inputs={"loop": "smaple"})
        self.assertEqual(done.returncode, 2, done.stdout)

    def test_inputs_with_hyphens_arrive(self):
        (self.workspace / "sub/.loops").mkdir(parents=True)
        (self.workspace / "sub/.loops/inner.yaml").write_text(loop("touch made").replace("sample", "inner"))
        self.runner.give(self.workspace / "sub")
        done = self.run_action("true", inputs={"loop": "inner", "working-directory": "sub"})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertTrue((self.workspace / "sub/made").exists())

    def test_all_that_it_makes_belongs_to_the_owner_of_the_workspace(self):
        done = self.run_action("mkdir -p a/b && echo x >a/b/c && ln -s c a/b/d && id -u")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertTrue((self.workspace / "a/b/c").exists())
        self.assertTrue((self.workspace / self.outputs["report-dir"]).is_dir())
        self.assert_all_is_the_runners()

    def test_git_trusts_the_workspace(self):
        done = self.run_action("git status --short && git log --oneline && git rev-parse --show-toplevel")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("dubious ownership", done.stdout)
        self.assertIn("/github/workspace", done.stdout)
        self.assertEqual(list((self.runner.temp / "_github_home").rglob(".gitconfig")), [], "no file is needed for it")

    def test_the_home_of_the_runner_can_be_written_to(self):
        done = self.run_action('echo x >"$HOME/x" && git config --global user.name me')
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_no_token_and_no_file_of_the_runner_is_in_the_environment_of_an_action(self):
        done = self.run_action("env >seen", env={"GITHUB_TOKEN": "ghs_secret"})
        self.assertEqual(done.returncode, 0, done.stdout)
        seen = "\n" + (self.workspace / "seen").read_text()
        self.assertIn("\nGITHUB_SHA=", seen)
        for name in ("ACTIONS_RUNTIME_TOKEN", "ACTIONS_RESULTS_URL", "GITHUB_TOKEN", "INPUT_LOOP", "GITHUB_OUTPUT",
                     "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY", "GITHUB_STATE"):  # fmt: skip
            self.assertNotIn(f"\n{name}=", seen)

    @unittest.skipUnless(os.getuid() == 0, "needs a workspace of another user")
    def test_an_action_has_no_way_to_the_docker_socket(self):
        os.chmod(engine.socket, 0o660)  # as on a runner: root and the group docker
        self.addCleanup(os.chmod, engine.socket, 0o666)
        done = self.run_action("test -S /var/run/docker.sock && ! test -w /var/run/docker.sock")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_read_only_workspace_is_a_clear_refusal(self):
        done = self.run_action("true", workspace_options=":ro")
        self.assertNotIn(done.returncode, (0, 1, 101), done.stdout)
        self.assertIn(".loops", done.stdout)
        self.assertRegex(done.stdout, r"(?i)read-only")
        self.assertNotIn("panicked", done.stdout)

    def test_what_is_left_behind_is_reaped(self):
        done = self.run_action(
            # Orphans of process 1, dead by the time it is looked.
            "for i in 1 2 3 4 5; do (setsid sleep 0.2 </dev/null >/dev/null 2>&1 &); done\n"
            "sleep 1.5\n"
            "if grep -l '^State:.*Z' /proc/[0-9]*/status; then exit 1; fi"
        )
        self.assertEqual(done.returncode, 0, done.stdout)

    def start(self, action):
        self.write_loop(loop(action))
        command = self.command()
        process = subprocess.Popen(
            [engine.client, *map(str, command)], env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.addCleanup(engine, "rm", "--force", self.name, check=False)
        wait_until((self.workspace / "started").exists, "the action runs")
        return process

    def stop(self, process, number):
        signalled = time.monotonic()
        process.send_signal(number)
        log, _ = process.communicate(timeout=60)
        self.assertLess(time.monotonic() - signalled, GRACE, log)
        return process.returncode, log

    def test_it_ends_at_once_when_the_runner_says_so(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                shutil.rmtree(self.workspace / ".loops", ignore_errors=True)
                (self.workspace / "started").unlink(missing_ok=True)
                code, log = self.stop(self.start("touch started\nsleep 300"), number)
                self.assertEqual(code, 128 + number, log)
                self.assert_state_is_saved()
                self.assertEqual(read_outputs(self.files["GITHUB_OUTPUT"])["outcome"], "interrupted")
                self.assertTrue(self.files["GITHUB_STEP_SUMMARY"].read_text())
                self.assert_all_is_the_runners()
                self.assertNotIn(self.name, engine("ps", "--all", "--format", "{{.Names}}").stdout)

    def test_it_ends_in_time_with_an_action_that_ignores_signals(self):
        process = self.start("trap '' INT TERM HUP\ntouch started\nwhile :; do sleep 1; done")
        code, log = self.stop(process, signal.SIGINT)
        self.assertEqual(code, 128 + signal.SIGINT, log)
        self.assert_state_is_saved()


class Image(OnTheEngine):
    """The image on its own, in any CI."""

    def run_image(self, *arguments, options=()):
        return engine("run", "--rm", "--label", LABEL, "--network", "none", *options, IMAGE, *arguments, check=False)

    def test_its_entrypoint_is_the_program(self):
        done = self.run_image("version")
        self.assertEqual(done.returncode, 0, done.stdout)
        version = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE).group(1)
        self.assertIn(version, done.stdout)

    def test_it_has_what_loops_commonly_call(self):
        done = engine(
            "run", "--rm", "--label", LABEL, "--network", "none", "--entrypoint", "bash", IMAGE, "-c",
            "for tool in bash git jq curl timeout sort; do command -v $tool || exit 1; done\n"
            "test -s /etc/ssl/certs/ca-certificates.crt",
            check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_its_configuration(self):
        config = engine.inspect(IMAGE)["Config"]
        self.assertEqual(config["Entrypoint"], ["ll-loop"])
        self.assertEqual(config["User"], "", "the runner needs root")
        self.assertIsNone(config.get("Healthcheck"))
        for label in ("title", "description", "source", "documentation", "licenses"):
            self.assertIn(f"org.opencontainers.image.{label}", config["Labels"])

    def test_it_runs_as_a_user_that_it_does_not_know(self):
        self.write_loop(loop("touch made && git status --short"))
        options = ["--user", f"{OWNER}:{OWNER}", "--volume", f"{self.workspace}:/github/workspace"]
        done = self.run_image("run", "--ci", "sample", options=options)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertTrue((self.workspace / "made").exists())
        self.assert_all_is_the_runners()

    def test_it_runs_in_any_directory(self):
        self.write_loop(loop("touch made && git status --short"))
        options = ["--volume", f"{self.workspace}:/srv/project", "--workdir", "/srv/project"]
        done = self.run_image("run", "--ci", "sample", options=options)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assert_all_is_the_runners()


class ImageOfATeam(OnTheEngine):
    """`uses: little-loops/ll-loop` with `image:`, through action.yml and docker/run.sh."""

    def run_action(self, action, inputs=None, during=None, **env):
        self.write_loop(loop(action))
        # What the tests run with must not come in: a directory with the client, and no more of the environment.
        clients = self.runner.work / "bin"
        clients.mkdir(exist_ok=True)
        (clients / "docker").exists() or (clients / "docker").symlink_to(engine.client)
        program = self.runner.work / "ll-loop"
        shutil.copy(os.environ["LL_LOOP_BIN"], program)
        program.chmod(0o755)
        environment = {
            "LL_LOOP_BINARY": str(program),
            "PATH": f"{clients}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "DOCKER_HOST": f"unix://{engine.socket}",
            **env,
        }
        given = {"loop": "sample", "image": TEAM_IMAGE, "network": "none", **(inputs or {})}
        return self.runner.run(ROOT, given, environment, during)

    def test_the_loop_runs_in_the_image(self):
        result = self.run_action("cat /toolchain && pwd && git log --oneline && touch made")
        self.assertEqual(result.code, 0, result.log)
        self.assertIn("the tools of a team", result.log)
        self.assertIn(str(self.workspace), result.log, "paths are the same inside and outside")
        self.assertEqual(result.outputs["outcome"], "success")
        self.assertTrue((self.workspace / result.outputs["report-dir"]).is_dir())
        self.assertIn("sample", result.steps["run"].files["GITHUB_STEP_SUMMARY"].read_text())
        self.assertEqual(len(result.uses), 2, "the reports are uploaded, and the page as a file of its own")
        self.assert_all_is_the_runners()

    def test_the_exit_code_passes_through(self):
        result = self.run_action("exit 1")
        self.assertEqual(result.code, 1, result.log)
        self.assertEqual(result.outputs["outcome"], "failure")

    def test_only_the_allow_list_goes_in(self):
        result = self.run_action(
            "env >seen", {"env": "DATABASE_URL"},
            DATABASE_URL="postgres://db", GITHUB_TOKEN="ghs_secret", AWS_SECRET_ACCESS_KEY="aws",
        )  # fmt: skip
        self.assertEqual(result.code, 0, result.log)
        seen = (self.workspace / "seen").read_text()
        self.assertIn("DATABASE_URL=postgres://db\n", seen)
        self.assertIn(f"GITHUB_WORKSPACE={self.workspace}\n", seen)
        for name in ("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DOCKER_HOST", "GITHUB_ENV"):
            self.assertNotIn(f"\n{name}=", f"\n{seen}")

    def test_the_files_of_the_runner_are_out_of_reach(self):
        result = self.run_action(
            "find / -xdev -name docker.sock >sockets 2>/dev/null || true\n"
            f"ls {self.runner.commands} >seen 2>/dev/null || true"
        )
        self.assertEqual(result.code, 0, result.log)
        self.assertEqual((self.workspace / "sockets").read_text(), "")
        files = result.steps["run"].files
        seen = (self.workspace / "seen").read_text()
        for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE"):
            self.assertNotIn(files[name].name, seen)

    def test_there_is_a_home_and_a_temporary_directory(self):
        result = self.run_action('echo x >"$HOME/x" && echo x >"$RUNNER_TEMP/x" && git config --global a.b c')
        self.assertEqual(result.code, 0, result.log)

    def test_the_program_cannot_be_replaced(self):
        result = self.run_action('! echo x 2>/dev/null >"$(command -v ll-loop)"')
        self.assertEqual(result.code, 0, result.log)

    def test_it_ends_at_once_when_the_runner_says_so(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                shutil.rmtree(self.workspace / ".loops", ignore_errors=True)
                started = self.workspace / "started"
                started.unlink(missing_ok=True)

                def during(step_id, process):
                    if step_id == "run":
                        wait_until(started.exists, "the action runs")
                        self.signalled = time.monotonic()
                        process.send_signal(number)

                result = self.run_action("touch started\nsleep 300", during=during)
                self.assertLess(time.monotonic() - self.signalled, GRACE)
                self.assertEqual(result.code, 128 + number, result.log)
                self.assertEqual(result.outputs["outcome"], "interrupted")
                self.assert_state_is_saved()
                self.assertEqual(engine("ps", "--all", "--quiet", "--filter", "name=ll-loop-4711").stdout, "")

    def test_a_container_whose_command_line_was_killed_is_removed(self):
        started = self.workspace / "started"

        def during(step_id, process):
            if step_id == "run":
                wait_until(started.exists, "the action runs")
                process.kill()

        result = self.run_action("touch started\nsleep 300", during=during)
        self.assertEqual(result.code, 128 + signal.SIGKILL)
        self.assertEqual(engine("ps", "--all", "--quiet", "--filter", "name=ll-loop-4711").stdout, "")


# What actions begin with that are hostile: where their run and the outside of their container have things.
HOSTILE = """
left=$(ls -d $RUNNER_TEMP/../../ll-loop-left.*)
run=$(ls .loops/.running | sed -n 's/\\.events\\.jsonl$//p' | head -n 1)
at=.loops/.running/$run
forge() { printf '%s<<x\\n%s\\nx\\n' "$1" "$2" >>$left/output; }
"""

# Of an action that ends its own run.
KILL = "kill -9 $PPID; sleep 60"


class HostileAction(ImageOfATeam):
    """What an action leaves that is in the container: it is data, wherever it lies."""

    SECRET = "stands-outside-of-the-container"

    def setUp(self):
        super().setUp()
        self.outside = self.runner.work / "outside"
        self.outside.mkdir()
        self.key = self.outside / "key.yaml"
        self.key.write_text(loop("true").replace("A sample", self.SECRET))
        self.runner.give(self.outside)
        self.stored = {}
        self.runner.perform = self.store

    def store(self, uses, arguments):
        """Takes what the action takes that uploads: it follows links."""
        path = self.workspace / arguments["path"]
        below = [Path(directory) / name for directory, _, names in os.walk(path, followlinks=True) for name in names]
        for file in below if path.is_dir() else [path]:
            self.assertTrue(file.is_file(), f"{file} is uploaded")
            self.stored[str(file)] = file.read_bytes()
        return "success"

    def attack(self, action):
        if (self.workspace / ".loops").is_symlink():
            (self.workspace / ".loops").unlink()
        shutil.rmtree(self.workspace / ".loops", ignore_errors=True)
        self.stored = {}
        action = HOSTILE + action.replace("OUTSIDE", str(self.outside)).replace("KEY", str(self.key))
        result = self.run_action(action, {"status": "false"})
        self.assertEqual(self.key.read_text().count(self.SECRET), 1)
        self.assertEqual(sorted(path.name for path in self.outside.iterdir()), ["key.yaml"])
        seen = {"log": result.log.encode(), "outputs": json.dumps(result.outputs).encode(), **self.stored}
        seen |= {name: file.read_bytes() for step in result.steps.values() for name, file in step.files.items()}
        for name, text in list(seen.items()):
            if name.endswith(".llz"):
                bundle = zipfile.ZipFile(io.BytesIO(text))
                seen |= {f"{name}/{entry}": bundle.read(entry) for entry in bundle.namelist()}
        leaks = [name for name, text in seen.items() if self.SECRET.encode() in text]
        self.assertEqual(leaks, [], result.log)
        self.assertEqual(engine("ps", "--all", "--quiet", "--filter", "name=ll-loop-4711").stdout, "")
        return result

    def ends(self, result, code, outcome):
        told = result.outputs
        self.assertEqual((result.code, told["exit-code"], told["outcome"], told["verified"]), (code, str(code), outcome, "false"))

    def test_outputs_that_it_forges_change_nothing(self):
        forged = "for pair in outcome:success exit-code:0 verified:true container:other handoff:true; do forge ${pair%%:*} ${pair##*:}; done\n"
        always = f"(setsid sh -c 'while :; do cat {{}}/forged >>{{}}/output; sleep 0.01; done' >/dev/null 2>&1 &)\n"
        for more in ("", "cp $left/output $left/forged; " + always.format("'$left'", "'$left'")):
            result = self.attack(forged + more + "exit 1")
            self.ends(result, 1, "failure")
            self.assertRegex(result.steps["run"].outputs["container"], "^ll-loop-4711-1-")

    def test_what_lies_in_the_place_of_its_outputs_is_neither_followed_nor_waited_for(self):
        for plant in ("ln -s KEY {}", "ln -s /dev/zero {}", "mkfifo {}", "mkdir {}", "truncate -s 20G {}", "ln -s OUTSIDE/new {}"):
            with self.subTest(plant):
                both = "; ".join(plant.format(f"$left/{name}") for name in ("output", "summary"))
                self.ends(self.attack(f"rm -f $left/output $left/summary; {both}; exit 1"), 1, "failure")

    def test_what_it_leaves_in_its_own_files_is_read_in_a_container(self):
        plants = (
            "true", "ln -sf KEY $at.log", "ln -sf KEY $at.state.json", "ln -sf KEY $at.events.jsonl", "ln -sf KEY $at.unreported",
            "rm -rf ${LL_RUN_DIR%/}; ln -s OUTSIDE ${LL_RUN_DIR%/}", "ln -s OUTSIDE $at.streams", "rm -rf $at.report; ln -s OUTSIDE $at.report",
            "mkdir -p $at.report; for f in report.html junit.xml summary.md output.log state.json; do ln -sf KEY $at.report/$f; done",
            "mkdir -p $at.report; mkfifo $at.report/pipe; ln -s OUTSIDE $at.report/deep", "mv .loops .other; ln -s OUTSIDE .loops",
            "sed -i '1s#\"file\":\"[^\"]*\"#\"file\":\"KEY\"#' $at.events.jsonl", "ln -sf KEY .loops/sample.yaml",
            "git config filter.y.clean 'cat KEY #'; echo '* filter=y' >.git/info/attributes; echo x >>README",
            "sed -i 's#\"report_dir\":null#\"report_dir\":\"OUTSIDE/new\"#' $at.unreported",
        )  # fmt: skip
        for plant in plants:
            with self.subTest(plant):
                result = self.attack(f"{plant}\n{KILL}")
                self.ends(result, 137, "interrupted")
                self.assertTrue(self.stored or plant != "true", result.log)

    def test_what_it_leaves_where_jobs_count_is_not_followed(self):
        self.attack("for file in $(find $RUNNER_TEMP/ll-loop -type f); do ln -sf KEY $file; done")
        self.write_loop(loop("true"))
        self.attack("true")


class Context(unittest.TestCase):
    """What .dockerignore lets in is enough to build from: the image of a branch is built there."""

    @classmethod
    def setUpClass(cls):
        cls.context = engine.directory / "exported"
        dockerfile = engine.directory / "export.Dockerfile"
        dockerfile.write_text("FROM scratch\nCOPY . /\n")
        engine("build", "--file", dockerfile, "--output", f"type=local,dest={cls.context}", ROOT)

    def test_it_holds_every_file_the_program_is_made_of(self):
        program = Path(os.environ["LL_LOOP_BIN"])
        dependencies = program.with_name(program.name + ".d")
        if not dependencies.exists():
            self.skipTest("this program was not built by cargo here")
        text = dependencies.read_text().split(":", 1)[1]
        sources = [Path(path.replace("\\ ", " ")) for path in re.split(r"(?<!\\) ", text.strip())]
        own = [path.relative_to(ROOT) for path in sources if path.is_relative_to(ROOT)]
        self.assertTrue(own)
        missing = [str(path) for path in own if not (self.context / path).exists()]
        self.assertEqual(missing, [], "add them to .dockerignore")

    def test_cargo_understands_it(self):
        done = subprocess.run(
            ["cargo", "metadata", "--no-deps", "--format-version", "1"], cwd=self.context, capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        targets = [target["name"] for package in json.loads(done.stdout)["packages"] for target in package["targets"]]
        self.assertIn("ll-loop", targets)

    def test_it_holds_nothing_else(self):
        top = {path.name for path in self.context.iterdir()}
        allowed = {".cargo", "Cargo.lock", "Cargo.toml", "benches", "catalog", "dist", "docs", "fuzz", "schema", "src", "tests"}
        self.assertLessEqual(top, allowed, "a list of what goes in")
        docs = {path.name for path in (self.context / "docs").iterdir()}
        self.assertEqual(docs, {"diagnostics.md", "why.md"}, "the pages that `explain` prints")


if __name__ == "__main__":
    unittest.main()
