"""GitLab's jobs, on gitlab-ci-local: a pair of which the first hands off and the second goes on, and the legs of a plan."""

import base64
import http.server
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

from act import ROOT
from test_act import CLAUDE, FIX, KEY, PROGRAM

PAIR = Path(__file__).parent / "gitlab/pair.gitlab-ci.yml"
SERVERS = ROOT / "docs/servers.md"
PAGE = ROOT / "docs/reuse.md"
# Where `npm ci` has put gitlab-ci-local.
RUNNER = Path(os.environ["LL_GITLAB_RUNNER"]) / "node_modules/.bin/gitlab-ci-local"


# Takes longer than the first job may, but not a second time.
SLOW = """\
name: tidy
initial: work
states:
  work: {action: 'if test ! -e src/half; then touch src/half; sleep 60; fi', on_yes: done}
  done: {action: 'echo at the end', terminal: true}
"""


UNIT = """\
name: unit
initial: check
reuse: {inputs: [src/], verify_every: 1000000000}
states:
  check: {action: test -e src/good, check: true, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
"""


class Pair(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ll-gitlab-")
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.tools = self.directory / "tools"
        self.tools.mkdir()
        (self.tools / "claude").write_text(CLAUDE)
        (self.tools / "claude").chmod(0o755)
        (self.tools / "ll-loop").symlink_to(PROGRAM)

    def play(self, **files):
        """Runs the pipeline for a commit with these files, and returns what was printed and the code."""
        repository = self.directory / "project"
        for name, text in {".loops/tidy.yaml": FIX, "src/tracked": "", ".gitlab-ci.yml": PAIR.read_text(), **files}.items():
            path = repository / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for command in (
            ["init", "--quiet", "--initial-branch=main"],
            ["remote", "add", "origin", "git@gitlab.com:o/r.git"],
            ["add", "--force", "."],
            ["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "--message", "Work"],
        ):
            subprocess.run(["git", *command], cwd=repository, check=True)
        environment = {"PATH": f"{self.tools}:{os.environ['PATH']}", "HOME": str(self.directory)}
        # Without isolation the two jobs would share one directory.
        command = [RUNNER, "--force-shell-executor", "--shell-isolation", "--variable", f"ANTHROPIC_API_KEY={KEY}"]
        done = subprocess.run(
            command, cwd=repository, env=environment, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
        )
        self.addCleanup(shutil.rmtree, repository)
        return done.stdout + done.stderr, done.returncode, repository / ".gitlab-ci-local/artifacts"

    def test_the_second_job_goes_on_where_the_first_one_handed_off(self):
        log, code, artifacts = self.play()
        self.assertEqual(code, 0, log[-3000:])
        self.assertIn("LL_LOOP_OUTCOME=handoff", (artifacts / "find/find-report/gitlab.env").read_text())
        self.assertIn("LL_LOOP_OUTCOME=success", (artifacts / "fix/fix-report/gitlab.env").read_text())
        self.assertIn("at the end: of leg none", log)
        # Sections are GitLab's, and the key is nowhere.
        self.assertRegex(log, r"section_start:\d+:")
        texts = [path.read_text(errors="replace") for path in artifacts.rglob("*") if path.is_file()]
        self.assertNotIn(KEY, "".join([log, *texts]))

    def test_the_pair_of_the_documentation(self):
        (text,) = re.findall(r"^```yaml\n(tidy:\n.*?)^```$", SERVERS.read_text(), re.MULTILINE | re.DOTALL)
        self.assertIn("--deadline 50m", text)
        text = text.replace("--deadline 50m", "--deadline 3s")
        log, code, _ = self.play(**{".gitlab-ci.yml": text, ".loops/tidy.yaml": SLOW})
        self.assertEqual(code, 0, log[-3000:])
        self.assertIn("at the end", log)
        self.assertRegex(log, r"handoff|handed off")

    def test_where_no_agent_is_needed_the_second_job_does_nothing(self):
        log, code, artifacts = self.play(**{"src/good": ""})
        self.assertEqual(code, 0, log[-3000:])
        self.assertIn("LL_LOOP_OUTCOME=success", (artifacts / "find/find-report/gitlab.env").read_text())
        self.assertIn("nothing to go on with", log)


class Reuse(unittest.TestCase):
    def test_the_cache_of_the_documentation_carries_what_was_verified(self):
        (text,) = re.findall(r"^```yaml\n(unit:\n  script: .*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        directory = tempfile.TemporaryDirectory(prefix="ll-gitlab-")
        self.addCleanup(directory.cleanup)
        project, tools = Path(directory.name) / "project", Path(directory.name) / "tools"
        tools.mkdir()
        (tools / "ll-loop").symlink_to(PROGRAM)
        for name, content in {".loops/unit.yaml": UNIT, "src/good": "", ".gitlab-ci.yml": text}.items():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(content)
        environment = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": directory.name}
        for command in (
            ["init", "--quiet", "--initial-branch=main"],
            ["remote", "add", "origin", "git@gitlab.com:o/r.git"],
            ["add", "--force", "."],
            ["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "--message", "Work"],
        ):
            subprocess.run(["git", *command], cwd=project, check=True, env=environment)

        def play():
            # Each job in a directory of its own, so that nothing but the cache is carried along.
            done = subprocess.run(
                [RUNNER, "--force-shell-executor", "--shell-isolation"], cwd=project, env=environment,
                capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
            return done.stdout + done.stderr

        self.assertIn("no earlier run is known", play())
        self.assertIn("same inputs, by run unit-", play())
        (project / "src/more").write_text("")
        subprocess.run(["git", "add", "."], cwd=project, check=True, env=environment)
        self.assertIn("src/more is new since run unit-", play())


PEOPLE = re.findall(r"^```yaml\n(# \.gitlab-ci\.yml\n.*?)^```$", (ROOT / "docs/people.md").read_text(), re.MULTILINE | re.DOTALL)

DEPLOY = """\
name: deploy
initial: ask
states:
  ask: {action_type: human_approval, action: Deploy?, on_yes: deploy, on_no: stopped, approvers: {users: [ada]}}
  deploy: {action: echo deployed by the answer, on_yes: done}
  stopped: {terminal: true, outcome: blocked}
  done: {terminal: true}
"""


class Api(http.server.BaseHTTPRequestHandler):
    """What GitLab says of the notes of a merge request of grace, after its documentation."""

    answers = {}

    def do_GET(self):
        below, _, _ = self.path.removeprefix("/api/v4").partition("?")
        self.answer(self.answers.get(below))

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer({"data": {"note": {"lastEditedAt": None}}} if self.path == "/api/graphql" else None)

    def answer(self, value):
        is_known = value is not None and self.headers["Authorization"] == "Bearer glpat-of-the-project"
        body = json.dumps(value if is_known else {"message": "404 Not found"}).encode()
        self.send_response(200 if is_known else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Questions(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ll-gitlab-")
        self.addCleanup(directory.cleanup)
        self.project = Path(directory.name) / "project"
        tools = Path(directory.name) / "tools"
        tools.mkdir()
        (tools / "ll-loop").symlink_to(PROGRAM)
        self.environment = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": directory.name}

    def git(self, *arguments):
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *arguments]
        return subprocess.run(command, cwd=self.project, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, pipeline, loop):
        for name, text in {".gitlab-ci.yml": pipeline, ".loops/deploy.yaml": loop}.items():
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).write_text(text)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("remote", "add", "origin", "git@gitlab.com:o/r.git")
        self.git("add", "--force", ".")
        self.git("commit", "--quiet", "--message", "Work")
        return self.git("rev-parse", "HEAD")

    def play(self, *arguments, **variables):
        given = [word for name, value in variables.items() for word in ("--variable", f"{name}={value}")]
        command = [RUNNER, "--force-shell-executor", "--shell-isolation", *given, *arguments]
        done = subprocess.run(
            command, cwd=self.project, env=self.environment, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
        )
        return done.stdout + done.stderr, done.returncode

    def asked(self):
        """The code of the question that the first job has left."""
        (result,) = self.project.glob(".gitlab-ci-local/artifacts/deploy/ll-loop-report/result.json")
        return json.loads(result.read_text())["awaiting"]

    def test_a_manual_job_answers(self):
        _, manual = PEOPLE
        self.commit(manual, DEPLOY.replace(", approvers: {users: [ada]}", ""))
        log, code = self.play()
        self.assertIn("waiting for a person", log)
        self.assertNotIn("deployed by the answer", log)
        log, code = self.play("approve")
        self.assertEqual(code, 0, log[-3000:])
        self.assertRegex(log, "deployed by the answer")

    def test_a_note_answers(self):
        notes, _ = PEOPLE
        head = self.commit(notes, DEPLOY)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        variables = {
            "CI_PIPELINE_SOURCE": "merge_request_event", "CI_MERGE_REQUEST_IID": "3", "CI_PIPELINE_ID": "70", "CI_PROJECT_PATH": "o/r",
            "CI_API_V4_URL": f"http://127.0.0.1:{server.server_port}/api/v4", "LL_TOKEN": "glpat-of-the-project", "NOTE": "501",
        }  # fmt: skip
        log, _ = self.play(**variables)
        self.assertIn("waiting for a person", log)
        asked = self.asked()
        note = {
            "id": 501, "type": None, "body": f"/ll-loop approve {asked['code']}", "author": {"id": 7, "username": "ada"}, "system": False,
            "created_at": asked["asked_at"], "noteable_type": "MergeRequest", "noteable_iid": 3,
        }  # fmt: skip
        below = "/projects/o%2Fr"
        Api.answers = {
            f"{below}/merge_requests/3/notes/501": note,
            f"{below}/merge_requests/3": {
                "iid": 3, "state": "opened", "sha": head, "author": {"id": 8, "username": "grace"}, "source_branch": "change",
                "target_branch": "main", "source_project_id": 64, "target_project_id": 64,
            },
            below: {"id": 64, "default_branch": "main"},
            f"{below}/members/all/7": {"id": 7, "state": "active", "access_level": 20},
            "/users/7": {"id": 7, "bot": False},
            f"{below}/pipelines/70": {"sha": head, "user": {"id": 8}},
            f"{below}/pipelines/70/jobs": [{"name": "answer", "user": {"id": 7}}],
            f"{below}/repository/files/.loops%2Fdeploy.yaml": {"content": base64.b64encode(DEPLOY.encode()).decode()},
        }  # fmt: skip
        note["author"]["id"] = 9
        log, code = self.play("answer", **variables)
        self.assertNotEqual(code, 0, log[-3000:])
        self.assertNotIn("deployed by the answer", log)
        note["author"]["id"] = 7
        log, code = self.play("answer", **variables)
        self.assertEqual(code, 0, log[-3000:])
        self.assertIn("approved by ada (comment 501)", log)
        self.assertIn("deployed by the answer", log)
        self.assertNotIn("glpat-of-the-project", log)


LEG = """\
name: tidy
initial: check
parameters: {path: {type: string}}
scope: ['${context.path}']
states:
  check: {action: 'test "$(cat ${context.path:shell}/state)" = ok', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
"""


class Legs(unittest.TestCase):
    def play(self, **packages):
        """Runs the child pipeline of a plan with an item for each package."""
        directory = tempfile.TemporaryDirectory(prefix="ll-gitlab-")
        self.addCleanup(directory.cleanup)
        project = Path(directory.name) / "project"
        tools = Path(directory.name) / "tools"
        tools.mkdir()
        (tools / "ll-loop").symlink_to(PROGRAM)
        files = {f"packages/{name}/state": state for name, state in packages.items()}
        for name, text in {".loops/tidy.yaml": LEG, **files}.items():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(text)
        environment = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": directory.name}
        # The runner does not download the plan from the pipeline above, so that jobs read it where it is.
        plan = ["ll-loop", "plan", "tidy", "--per-path", "packages/*", "-o", f"{directory.name}/plan.json"]
        for command in (
            ["git", "init", "--quiet", "--initial-branch=main"],
            ["git", "remote", "add", "origin", "git@gitlab.com:o/r.git"],
            ["git", "add", "--force", "."],
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "--message", "Work"],
            [*plan, "--matrix", "gitlab", "--jobs", "legs.yml"],
        ):
            subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True)
        command = [RUNNER, "--file", "legs.yml", "--force-shell-executor", "--shell-isolation"]
        command += ["--variable", "PARENT_PIPELINE_ID=7"]
        done = subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
        )
        return done.stdout + done.stderr, done.returncode

    def test_the_merge_has_what_every_leg_left(self):
        log, code = self.play(api="ok", web="ok", docs="ok")
        self.assertEqual(code, 0, log[-3000:])
        self.assertIn("3 of 3 items verified", log)

    def test_the_merge_runs_when_a_leg_fails(self):
        log, code = self.play(api="ok", web="bad")
        self.assertNotEqual(code, 0, log[-3000:])
        self.assertRegex(log, r"PASS .*leg l01: packages/api")
        self.assertRegex(log, r"FAIL .*leg l02: packages/web")
        self.assertRegex(log, r"merge .*1 of 2 items verified")


if __name__ == "__main__":
    unittest.main()
