"""The workflows of the documentation, and what jobs can ask of the action, on act: a runner that is not ours."""

import concurrent.futures
import http.server
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

import yaml

from act import REPOSITORY, ROOT, Act

PROGRAM = os.environ["LL_LOOP_BIN"]
# Where `npm ci` has put GitHub's client of artifacts.
CLIENT = Path(os.environ["LL_ARTIFACT_CLIENT"])
KEY = "sk-ant-of-the-repository"
# More than one of any other process.
LONG = f"86399.{os.getpid()}"


def of_file(document, pattern):
    """The files in a document, by the name that stands in their first line."""
    text = (ROOT / document).read_text()
    return {name: text for text, name in re.findall(rf"^```yaml\n({pattern}\n.*?)^```$", text, re.MULTILINE | re.DOTALL)}


CALLERS = of_file("docs/workflows.md", r"# \.github/workflows/([\w-]+\.yml)")
DEPLOY = of_file("docs/people.md", r"# \.github/workflows/([\w-]+\.yml)")["deploy.yml"]
SETUP = of_file("docs/workflows.md", r"# (\.github/actions/ll-loop-setup/action\.yml)")
README = of_file("README.md", r"name: (tidy)\non: [^\n]*")["tidy"]

CHECK = """\
name: tidy
description: Finds out whether a file is there
initial: check
scope: [src]
parameters:
  node: {type: string, default: none}
states:
  check: {action: 'echo "with node ${context.node}"; test -e src/good', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
"""

PACKAGE = """\
name: tidy
description: Finds out whether a package is good
initial: check
parameters: {path: {type: string}}
scope: ['${context.path}']
states:
  check: {action: 'test -e ${context.path:shell}/good', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
"""

FAN_OUT = """\
name: tidy
on: push
jobs:
  tidy:
    uses: little-loops/ll-loop/.github/workflows/fan-out.yml@v1
    with: { loop: tidy, per-path: packages/* }
"""

# Where it begins it leaves word, and it needs an agent to go on.
FIX = """\
name: tidy
description: An agent makes what a check misses
initial: prepare
max_iterations: 3
parameters:
  leg: {type: string, default: none}
states:
  prepare: {action: 'echo prepared >src/prepared; echo "of leg ${context.leg}"', capture: first, next: check}
  check: {action: test -e src/good, on_yes: done, on_no: write}
  write: {action: Write src/good., action_type: prompt, next: check}
  done: {action: 'echo at the end: ${captured.first.output:shell}', terminal: true}
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

ASKS = """\
name: deploy
description: deploys what was approved
initial: ask
states:
  ask: {action_type: human_approval, action: Deploy?, on_yes: deploy, on_no: stopped}
  deploy: {action: 'echo "deployed by the answer"', next: done}
  stopped: {terminal: true, outcome: blocked, description: nobody approved}
  done: {terminal: true}
"""

SLOW = f"""\
name: tidy
description: Is never over
initial: work
states:
  work: {{action: sleep {LONG}, next: done}}
  done: {{terminal: true}}
"""

# Takes longer than its first job may, but not a second time.
ONCE_SLOW = f"""\
name: tidy
description: Is over in its second part
initial: work
states:
  work: {{action: 'if test -e src/half; then echo at the end of the second part; else touch src/half; sleep {LONG}; fi', on_yes: done}}
  done: {{terminal: true}}
"""

CLAUDE = f"""\
#!/bin/bash
[ "$1" = --version ] && {{ echo "9.9 (fake)"; exit 0; }}
# The broker has the key; the agent has a token of this call.
[ -n "$ANTHROPIC_AUTH_TOKEN" ] && [ -z "$ANTHROPIC_API_KEY" ] || exit 9
[ -z "$LL_TOKEN$ACTIONS_RUNTIME_TOKEN$GITHUB_TOKEN" ] || exit 8
touch src/good
echo '{{"type": "result", "subtype": "success", "is_error": false, "result": "wrote it", "total_cost_usd": 0.25}}'
"""

CHECKOUT = """\
      - uses: actions/checkout@d23441a48e516b6c34aea4fa41551a30e30af803 # v6.1.0
        with: { persist-credentials: false }
"""

RELAY = f"""\
name: relay
on: [push]
permissions: {{}}
jobs:
  begin:
    strategy:
      fail-fast: false
      matrix:
        leg: [a, b]
    runs-on: ubuntu-24.04
    permissions: {{ contents: read, statuses: write }}
    steps:
{CHECKOUT}
      - uses: little-loops/ll-loop@v1
        id: loop
        continue-on-error: true
        with:
          loop: tidy
          params: leg=${{{{ matrix.leg }}}}
          key: ${{{{ matrix.leg }}}}
  finish:
    needs: begin
    strategy:
      fail-fast: false
      matrix:
        leg: [a, b]
    runs-on: ubuntu-24.04
    permissions: {{ actions: read, contents: read, statuses: write }}
    steps:
{CHECKOUT}
      - uses: little-loops/ll-loop@v1
        id: loop
        with:
          loop: tidy
          key: ${{{{ matrix.leg }}}}
          resume-from: run:${{{{ github.run_id }}}}
          llm: "true"
          args: --max-cost 2
        env:
          ANTHROPIC_API_KEY: ${{{{ secrets.ANTHROPIC_API_KEY }}}}
"""

TWICE = f"""\
name: twice
on: [push]
permissions: {{}}
jobs:
  tidy:
    runs-on: ubuntu-24.04
    permissions: {{ contents: read, statuses: write }}
    outputs:
      names: ${{{{ steps.first.outputs.artifact-name }}}} ${{{{ steps.second.outputs.artifact-name }}}}
    steps:
{CHECKOUT}
      - {{ uses: little-loops/ll-loop@v1, id: first, with: {{ loop: tidy, params: node=20 }} }}
      - {{ uses: little-loops/ll-loop@v1, id: second, with: {{ loop: tidy, params: node=22 }} }}
  read:
    needs: tidy
    runs-on: ubuntu-24.04
    permissions: {{ contents: read }}
    steps:
      - name: With GitHub's own client
        env:
          NAMES: ${{{{ needs.tidy.outputs.names }}}}
        run: |
          for name in $NAMES; do
            node "$LL_ARTIFACT_CLIENT/client.mjs" download "$name" "$RUNNER_TEMP/$name"
            echo "$name holds: $(cd "$RUNNER_TEMP/$name" && find . -type f | sort | xargs)"
            grep --no-filename --only-matching "with node [0-9]*" -r "$RUNNER_TEMP/$name" | sort --unique
          done
"""

ABSENT = f"""\
name: absent
on: [push]
permissions: {{}}
jobs:
  tidy:
    runs-on: ubuntu-24.04
    permissions: {{ contents: read, statuses: write }}
    steps:
{CHECKOUT}
      - {{ uses: little-loops/ll-loop@v1, id: loop, with: {{ loop: tdiy }} }}
"""

# Of itself, it does not go on with what it hands off.
ENDLESS = f"""\
name: endless
on:
  push:
  workflow_dispatch:
    inputs:
      resume-from: {{ description: The run to go on with, default: "" }}
      chain-depth: {{ description: How many runs came before, default: "" }}
      sha: {{ description: The commit that is reported on, default: "" }}
permissions: {{}}
jobs:
  tidy:
    runs-on: ubuntu-24.04
    permissions: {{ actions: read, contents: read, statuses: write }}
    steps:
{CHECKOUT}
      - uses: little-loops/ll-loop@v1
        id: loop
        with:
          loop: tidy
          # The second part is not to be handed off, however slow the machine is.
          deadline: ${{{{ inputs.resume-from == '' && '8s' || '1h' }}}}
          on-change: report
          resume-from: ${{{{ inputs.resume-from }}}}
          sha: ${{{{ inputs.sha }}}}
"""

TIMED_OUT = f"""\
name: late
on: [push]
permissions: {{}}
jobs:
  tidy:
    runs-on: ubuntu-24.04
    permissions: {{ contents: read, statuses: write }}
    steps:
{CHECKOUT}
      - uses: little-loops/ll-loop@v1
        timeout-minutes: 1
        id: loop
        with: {{ loop: tidy }}
"""


def pull_request(sha, base):
    repository = {"full_name": REPOSITORY, "id": 1}
    return {
        "pull_request": {
            "number": 7,
            "head": {"sha": sha, "ref": "topic", "repo": repository},
            "base": {"sha": base, "ref": "main", "repo": repository},
        }
    }


class OnAct(unittest.TestCase):
    def setUp(self):
        directory = tempfile.mkdtemp(prefix="ll-act-")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        self.act = Act(directory, PROGRAM)
        self.addCleanup(self.act.close)
        claude = self.act.tools / "claude"
        claude.write_text(CLAUDE)
        claude.chmod(0o755)

    def repository(self, loop, **files):
        return self.act.commit({".loops/tidy.yaml": loop, "src/tracked": "", **files})

    def call(self, event, file, changes=(), **options):
        """Runs a file of the documentation."""
        text = CALLERS[file]
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        return self.act.run(event, text, file, **options)

    def assert_results(self, played, **wanted):
        """What became of the jobs, whose names are made into such of Python."""
        found = {re.sub(r"\W", "_", name): result for name, result in played.results.items()}
        self.assertEqual(found, wanted, played.told)

    def assert_no_notice_of_permissions(self, played):
        self.assertNotRegex(played.log, r"permission|statuses: write")

    def statuses(self, sha):
        """What was said last of the commit, by the context."""
        return {
            status["context"]: f"{status['state']}: {status['description']}"
            for status in self.act.github.statuses if status["sha"] == sha
        }  # fmt: skip


class Readme(OnAct):
    def test_the_first_example_says_nothing_of_permissions(self):
        base = self.repository(CHECK)
        head = self.act.commit({"src/good": ""})
        self.act.github.permissions = yaml.safe_load(README)["jobs"]["tidy"]["permissions"]
        played = self.act.run("pull_request", README, "tidy.yml", pull_request(head, base))
        self.assert_results(played, tidy="success")
        self.assertEqual(self.statuses(head), {"ll-loop/tidy": "success: success: `check` said yes"})
        self.assert_no_notice_of_permissions(played)


class Callers(OnAct):
    def test_every_one_is_run(self):
        """A new caller in the documentation needs a test here."""
        tested = {name for name in dir(self) if name.startswith("test_")}
        for file in CALLERS:
            self.assertIn(f"test_{file.removesuffix('.yml').replace('-', '_')}", {name[: len(file) + 1] for name in tested}, file)

    def test_tidy_is_green_and_red(self):
        base = self.repository(CHECK)
        for files, result, said in (
            ({"src/other": "x"}, "failure", "failure: failure: `check` said no"),
            ({"src/good": "x"}, "success", "success: success: `check` said yes"),
        ):
            head = self.act.commit(files)
            played = self.call("pull_request", "tidy.yml", payload=pull_request(head, base))
            self.assert_results(played, tidy_check_tidy=result)
            self.assertEqual(self.statuses(head), {"ll-loop/tidy": said})
            base = head

    def test_tidy_of_another_machine_with_its_own_tools(self):
        """What platform teams set: the directory, the runner, a set-up of their own, a cache."""
        action = SETUP[".github/actions/ll-loop-setup/action.yml"]
        loop = "name: tidy\ninitial: a\nstates:\n  a: {action: 'test $TIDY_LEVEL = strict && tool', on_yes: z, on_no: f}\n"
        loop += "  z: {terminal: true}\n  f: {terminal: true, outcome: failure}\n"
        tool = "#!/bin/sh\necho the tool of the team\n"
        sha = self.repository(CHECK, **{
            "sub/.loops/tidy.yaml": loop, "tools/tool": tool, "Cargo.lock": "x",
            ".github/actions/ll-loop-setup/action.yml": action,
        })  # fmt: skip
        (self.act.origin / "tools/tool").chmod(0o755)
        sha = self.act.commit({})
        asked = "".join(
            f"      {line}\n"
            for line in (
                "working-directory: sub", """runs-on: '["ubuntu-24.04", "x64"]'""", "setup: true", "cache-path: target",
                "cache-hash: '**/Cargo.lock'", "status-context: quality/tidy", "strict: 'false'", "retention-days: '3'",
            )
        )  # fmt: skip
        played = self.call("push", "tidy.yml", [("      loop: tidy\n", f"      loop: tidy\n{asked}")])
        self.assert_results(played, tidy_check_tidy="success")
        self.assertIn("the tool of the team", played.log)
        self.assertRegex(played.log, r"the cache is ll-loop-Linux-X64-[0-9a-f]{64}")
        self.assertEqual(list(self.statuses(sha)), ["quality/tidy"])

    def test_tidy_carries_what_was_verified_from_run_to_run(self):
        loop = CHECK.replace("states:\n", "reuse: {inputs: [src/], verify_every: 1000000000}\nstates:\n")
        cache = self.act.directory / "cache"
        base = self.repository(loop, **{"src/good": ""})
        asked = [("      loop: tidy\n", "      loop: tidy\n      reuse: true\n")]

        def play(event, payload=None):
            played = self.call(event, "tidy.yml", asked, payload=payload, env={"LL_CACHE": str(cache)})
            self.assert_results(played, tidy_check_tidy="success")
            return played, sorted(place.name.split("-")[4] for place in cache.iterdir())

        played, kept = play("push")
        self.assertNotIn("same inputs", played.log)
        self.assertEqual(kept, ["branches"])
        # What is the same is not run, and not saved once more.
        played, kept = play("push")
        self.assertIn("same inputs, by run", played.log)
        self.assertNotIn("the cache is saved", played.log)
        # A pull request takes what the branch has left, and keeps its own apart.
        head = self.act.commit({".loops/tidy.yaml": f"# said\n{loop}"})
        played, _ = play("pull_request", pull_request(head, base))
        self.assertIn("same inputs, by run", played.log)
        head = self.act.commit({"src/more": "x"})
        played, kept = play("pull_request", pull_request(head, base))
        self.assertNotIn("same inputs, by run", played.log)
        self.assertEqual(kept, ["7", "branches"])
        # The branch does not, although the tree is the same.
        played, kept = play("push")
        self.assertNotIn("same inputs, by run", played.log)
        # What strangers can set off with the cache of the default branch keeps nothing.
        before = len(kept)
        self.act.commit({"src/even-more": "x"})
        played = self.call("issue_comment", "tidy.yml", [*asked, ("on:\n", "on:\n  issue_comment:\n")], env={"LL_CACHE": str(cache)})
        self.assertNotIn("the cache is saved", played.log)
        self.assertEqual(len(list(cache.iterdir())), before)

    def test_matrix_has_a_status_and_an_artifact_for_each_leg(self):
        sha = self.repository(CHECK, **{"src/good": ""})
        played = self.call("push", "matrix.yml")
        self.assertEqual(set(played.results.values()), {"success"}, played.told)
        self.assertEqual(len(played.results), 4)
        contexts = self.statuses(sha)
        self.assertEqual(len(contexts), 4, contexts)
        names = {outputs["artifact-name"] for outputs in played.outputs("loop").values()}
        self.assertEqual(len(names - {""}), 4, names)
        for node in ("20", "22"):
            self.assertIn(f"with node {node}", played.log)

    def test_fix_has_an_agent_in_its_second_job_alone(self):
        base = self.repository(FIX)
        head = self.act.commit({"src/other": "x"})
        changes = [('      host: "@anthropic-ai/claude-code@2.1.330"\n', "")]
        payload, secrets = pull_request(head, base), {"ANTHROPIC_API_KEY": KEY}
        played = self.call("pull_request", "fix.yml", changes, payload=payload, secrets=secrets)
        find, fix = (next((job for job in played.results if part in job), "") for part in ("without an", "with an"))
        self.assertEqual(played.results.get(find), "success", played.told)
        self.assertIn("at the end: of leg none", played.of(fix))
        self.assertNotIn("at the end", played.of(find))
        self.assertNotIn(KEY, played.log)
        (said,) = self.statuses(head).values()
        self.assertEqual(said, "pending: waits for the delivery of changes to 2 files")
        self.assert_delivered(played, "--to=pr --base=topic")
        self.assertNotIn("attested is", played.log)

    def assert_delivered(self, played, options):
        """One job was to deliver what another one of the same run has left."""
        (job,) = (job for job in played.results if "delivered" in job)
        self.assertEqual(played.results[job], "success", played.told)
        names = {outputs["artifact-name"] for outputs in played.outputs("loop").values()}
        said = played.of(job)
        self.assertIn(re.search(rf"to deliver: deliver {options} -- artifact:(\S+)", said)[1], names, said)

    def test_fix_tells_how_it_ended(self):
        told = []

        class Inbox(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        inbox = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Inbox)
        threading.Thread(target=inbox.serve_forever, daemon=True).start()
        self.addCleanup(inbox.server_close)
        self.addCleanup(inbox.shutdown)
        address = f"http://127.0.0.1:{inbox.server_port}/hook"
        base = self.repository(CHECK)
        head = self.act.commit({"src/other": "x"})
        secret = "      ANTHROPIC_API_KEY: ${{ secrets.ANTHROPIC_API_KEY }}\n"
        changes = [
            ('      host: "@anthropic-ai/claude-code@2.1.330"\n', ""),
            (secret, secret + "      notify: ${{ secrets.notify }}\n"),
        ]
        secrets = {"ANTHROPIC_API_KEY": KEY, "notify": address}
        played = self.call("pull_request", "fix.yml", changes, payload=pull_request(head, base), secrets=secrets)
        self.assertEqual([(document["is"], document["loop"]) for document in told], [("red", "tidy")], played.told)
        self.assertNotIn(address, played.log)

    def test_fix_delivers_nothing_where_that_is_not_wanted(self):
        base = self.repository(FIX)
        head = self.act.commit({"src/other": "x"})
        changes = [('      host: "@anthropic-ai/claude-code@2.1.330"\n', "      deliver: none\n")]
        payload, secrets = pull_request(head, base), {"ANTHROPIC_API_KEY": KEY}
        played = self.call("pull_request", "fix.yml", changes, payload=payload, secrets=secrets)
        self.assertEqual([job for job in played.results if "delivered" in job], [], played.told)

    def test_fix_on_label_runs_for_its_label_alone(self):
        base = self.repository(FIX)
        head = self.act.commit({"src/other": "x"})
        changes = [('      host: "@anthropic-ai/claude-code@2.1.330"\n', "")]
        secrets = {"ANTHROPIC_API_KEY": KEY}
        for label in ("bug", "ll-loop:fixed", "ll-loop"):
            payload = {**pull_request(head, base), "action": "labeled", "label": {"name": label}}
            played = self.call("pull_request", "fix-on-label.yml", changes, payload=payload, secrets=secrets)
            self.assertEqual(list(played.results), [], f"{label}: {played.told}")
        payload = {**pull_request(head, base), "action": "labeled", "label": {"name": "ll-loop:fix"}}
        played = self.call("pull_request", "fix-on-label.yml", changes, payload=payload, secrets=secrets)
        (said,) = self.statuses(head).values()
        self.assertEqual(said, "pending: waits for the delivery of changes to 2 files", played.told)
        self.assert_delivered(played, "--to=pr --base=topic")

    def test_fix_in_a_matrix_has_one_status_for_the_two_jobs_of_a_leg(self):
        base = self.repository(FIX)
        head = self.act.commit({"src/other": "x"})
        matrix = "    strategy:\n      fail-fast: false\n      matrix: { leg: [a, b], node: [20] }\n"
        changes = [
            ('      host: "@anthropic-ai/claude-code@2.1.330"\n', "      params: leg=${{ matrix.leg }}\n"),
            ("      loop: tidy\n", "      loop: tidy\n      key: ${{ toJSON(matrix) }}\n"),
            ("  tidy:\n", f"  tidy:\n{matrix}"),
        ]
        payload, secrets = pull_request(head, base), {"ANTHROPIC_API_KEY": KEY}
        played = self.call("pull_request", "fix.yml", changes, payload=payload, secrets=secrets)
        self.assertEqual(sorted(played.results.values()), ["success"] * 6, played.told)
        states = {context: said.split(":")[0] for context, said in self.statuses(head).items()}
        self.assertEqual(states, {f"ll-loop/tidy (find.{leg}_20)": "pending" for leg in ("a", "b")})
        for leg in ("a", "b"):
            self.assertIn(f"at the end: of leg {leg}", played.log)

    def test_nightly_needs_no_night_before(self):
        self.repository(NIGHT, **{"src/broken": ""})
        # What the runner sets where the caller grants an identity.
        played = self.call("schedule", "nightly.yml", env={"ACTIONS_ID_TOKEN_REQUEST_URL": "https://github.com/x"})
        self.assertEqual(sorted(played.results.values()), ["success"] * 2, played.told)
        self.assertIn("this is the first night", played.log)
        self.assert_delivered(played, "--to=pr")
        self.assertRegex(played.log, r"attested is ll-loop-tidy-\S+ sha256:0")
        self.assertEqual(self.act.github.statuses, [])

    def test_signed_is_what_follows_from_the_bundle(self):
        """All of it but the signature itself, for which there is no service."""
        self.repository(CHECK, **{"src/good": ""})
        played = self.call("push", "signed.yml")
        self.assertEqual(sorted(played.results.values()), ["success"] * 2, played.told)
        self.assertRegex(played.log, r"attested is tidy-\S+\.llz sha256:[0-9a-f]{64}")
        self.assertRegex(played.log, r"as https://\S+/verdict/v1: \{")
        self.assertIn("LL_LOOP_VERIFIED", played.log)

    def test_signed_is_nothing_of_a_failure(self):
        self.repository(CHECK)
        played = self.call("push", "signed.yml")
        self.assertIn("failure", played.results.values(), played.told)
        self.assertNotIn("attested is", played.log)

    def test_board_is_made_of_what_the_loops_of_a_repository_have_stored(self):
        """All of it but the page as an artifact, which the server of act does not take."""
        self.repository(CHECK, **{"src/good": ""})
        reports = self.act.directory / "reports"
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.act.directory)}
        run = [PROGRAM, "run", "tidy", "--report-dir", str(reports)]
        subprocess.run(run, cwd=self.act.origin, env=environment, check=True, capture_output=True, timeout=60)
        packed = Path(shutil.make_archive(str(self.act.directory / "packed"), "zip", reports)).read_bytes()
        self.act.github.store("ll-loop-tidy-x-r42-a1", packed)
        self.act.github.store("ll-loop-tidy-x-r43-a1", packed, run_id=43, head_repository_id=2)
        changes = [("        octo-org/web\n        octo-org/api\n", f"        {REPOSITORY}\n        {REPOSITORY}/nothing\n")]
        played = self.call("workflow_dispatch", "board.yml", changes)
        self.assertIn(f"fetched 1 artifact of {REPOSITORY}, and 0 were there", played.log)
        self.assertIn("the cache is ll-loop-board-1-", played.log)
        # A repository that cannot be read is said, and the others are shown.
        self.assertRegex(played.log, "invalid repository")
        self.assertIn("a repository could not be read", played.log)
        page = next(self.act.directory.rglob("ll-loop-board.html"))
        self.assertIn(f">{REPOSITORY}<", page.read_text())

    def test_chain_starts_the_next_run(self):
        sha = self.repository(SLOW)
        played = self.call("push", "chain.yml", [("      loop: tidy\n", "      loop: tidy\n      deadline: 2s\n")])
        self.assert_results(played, tidy_chain_tidy="success")
        (dispatch,) = self.act.github.dispatches
        self.assertEqual(dispatch["inputs"], {"resume-from": "run:1", "chain-depth": "1", "sha": sha})
        (said,) = self.statuses(sha).values()
        self.assertTrue(said.startswith("pending: handed off: goes on in run"), said)

    def fan_out(self, caller):
        self.repository(PACKAGE, **{f"packages/{name}/good": "" for name in ("api", "web")})
        return self.act.run("push", caller, "fan-out.yml")

    def test_a_fan_out_stores_and_fetches_by_its_own_client(self):
        played = self.fan_out(FAN_OUT)
        self.assertEqual(sorted(played.results.values()), ["success"] * 4, played.told)
        self.assertIn("2 of 2 items verified", played.log)
        self.assertNotIn("are not currently supported on this server", played.log)

    def test_a_fan_out_leaves_out_what_an_earlier_one_has_verified(self):
        cache = self.act.directory / "cache"
        reusable = PACKAGE.replace("states:\n", "reuse: {inputs: ['${param.path}/'], verify_every: 1000000000}\nstates:\n")
        files = {f"packages/{name}/good": "" for name in ("api", "web")}
        self.repository(reusable, **files)
        caller = FAN_OUT.replace("packages/* }", "packages/*, reuse: true }")

        def play(run):
            env = {"LL_CACHE": str(cache), "GITHUB_RUN_ID": run}
            played = self.act.run("push", caller, "fan-out.yml", env=env)
            self.assertEqual(set(played.results.values()), {"success"}, played.told)
            return played

        played = play("1")
        self.assertIn("2 of 2 items verified", played.log)
        (kept,) = cache.iterdir()
        self.assertEqual(len(list((kept / "tidy").glob("*.json"))), 2)
        # Only what changed is on a leg, and what both runs have verified is kept.
        self.act.commit({"packages/api/more": "x"})
        played = play("2")
        self.assertIn("2 of 2 items verified, 1 of them by earlier runs", played.log)
        played = play("3")
        self.assertIn("2 of 2 items verified, 2 of them by earlier runs", played.log)

    def test_legs_are_listed_where_the_matrix_has_to_stand_in_the_file(self):
        played = self.fan_out(of_file("docs/fan-out-elsewhere.md", r"# \.gitea/workflows/([\w-]+\.yml)")["tidy.yml"])
        self.assertEqual(sorted(played.results.values()), ["success"] * 6, played.told)
        self.assertIn("2 of 2 items verified", played.log)
        self.assertIn("this job has nothing to run", played.log)

    def test_publish_asks_who_made_the_run(self):
        sha = self.repository(CHECK)
        page = f"https://github.com/{REPOSITORY}/actions/runs/4711"
        run = {"id": 4711, "event": "pull_request", "status": "completed", "conclusion": "success", "run_attempt": 1}
        run |= {"head_sha": sha, "head_branch": "topic", "html_url": page}
        for owner, jobs in ((REPOSITORY, []), ("mallory/r", ["tidy/publish/publish"])):
            run["head_repository"] = {"id": 1 if owner == REPOSITORY else 2, "full_name": owner}
            payload = {"action": "completed", "workflow_run": run, "repository": {"full_name": REPOSITORY, "id": 1}}
            played = self.call("workflow_run", "publish.yml", payload=payload)
            self.assertEqual(list(played.results), jobs, played.told)
            self.assertEqual([step for step in played.steps if "checkout" in step], [])
        # The run left nothing.
        self.assertRegex(self.statuses(sha)["ll-loop/tidy"], "^error: .*no report")

    def comment(self, pull, body):
        """A comment of ada on the pull request, and what becomes of the workflow that it sets off."""
        comment = self.act.github.comment(pull["number"], "ada", body)
        payload = {
            "action": "created", "comment": comment, "issue": {"number": pull["number"], "pull_request": {}},
            "repository": {"full_name": REPOSITORY, "id": 1},
        }  # fmt: skip
        return self.call("issue_comment", "commands.yml", payload=payload)

    def asking(self):
        """A run on a pull request of grace that asks whether to deploy: the pull request, its head, and the workflow."""
        github = self.act.github
        sha = self.act.commit({".loops/deploy.yaml": ASKS})
        event = pull_request(sha, sha)
        pull = event["pull_request"]
        pull["base"]["repo"] = {**pull["base"]["repo"], "default_branch": "main"}
        pull |= {"state": "open", "user": {"id": 8, "login": "grace"}}
        github.pulls, github.writers = [pull], {"ada"}
        github.contents["main", ".loops/deploy.yaml"] = ASKS
        deploy = DEPLOY.replace("    with:\n", "    with:\n      strict: 'false'\n")
        asked = self.act.run("pull_request", deploy, "deploy.yml", payload=event)
        self.assertEqual(github.dispatches, [], "nothing goes on by itself")
        self.assertRegex(self.statuses(sha)["ll-loop/deploy"], r"^pending: waiting for a person \([0-9a-f]{8}\): Deploy\?$", asked.told)
        own = {"id": 1}
        github.runs[1] |= {"actor": {"id": 8}, "repository": own, "head_repository": own, "status": "completed"}
        # Every run of act is the first one.
        github.runs = First(github.runs[1])
        return pull, sha, deploy

    def test_commands_go_on_with_a_run_that_asks(self):
        github = self.act.github
        pull, sha, deploy = self.asking()
        played = self.comment(pull, "Looks good.\n/ll-loop approve")
        self.assertEqual(list(played.results), [], played.told)
        github.writers = set()
        played = self.comment(pull, "/ll-loop approve")
        self.assertIn("no write access", played.log)
        self.assertEqual(github.dispatches, [], played.told)
        github.writers = {"ada"}
        played = self.comment(pull, "/ll-loop approve")
        self.assertEqual([step for step in played.steps if "checkout" in step], [])
        (dispatch,) = github.dispatches
        answer = str(max(number for number, row in github.comments.items() if row["user"]["login"] == "ada"))
        self.assertEqual(dispatch["workflow"], "deploy.yml")
        self.assertEqual(dispatch["inputs"], {"resume-from": "run:1", "answer": answer, "sha": sha})
        self.assertEqual([content for _, content in github.reactions], ["eyes", "-1", "eyes", "+1"])
        replies = [row["body"] for row in github.comments.values() if row["user"]["login"] == "github-actions[bot]"]
        self.assertEqual(len(replies), 1, "one reply is kept")
        going = self.act.run("workflow_dispatch", deploy, "deploy.yml", inputs=dispatch["inputs"])
        self.assertIn("deployed by the answer", going.log, going.told)
        self.assertRegex(self.statuses(sha)["ll-loop/deploy"], "^success")

    def test_a_question_that_is_stopped_ends_in_a_job_of_its_own(self):
        github = self.act.github
        pull, sha, deploy = self.asking()
        played = self.comment(pull, "/ll-loop stop")
        self.assertEqual(self.statuses(sha)["ll-loop/deploy"], "error: stopped by ada", played.told)
        (dispatch,) = github.dispatches
        stop = str(max(number for number, row in github.comments.items() if row["user"]["login"] == "ada"))
        self.assertEqual(dispatch["inputs"], {"resume-from": "run:1", "answer": stop, "sha": sha})
        ended = self.act.run("workflow_dispatch", deploy, "deploy.yml", inputs=dispatch["inputs"])
        self.assertIn(f"stopped by ada (comment {stop}) before somebody answered in `ask`", ended.log, ended.told)
        self.assertNotIn("deployed by the answer", ended.log)
        self.assertRegex(self.statuses(sha)["ll-loop/deploy"], "^error: .*stopped by ada")
        played = self.comment(pull, "/ll-loop approve")
        self.assertIn("no question is open at this commit", played.log, played.told)
        self.assertEqual(len(github.dispatches), 1, "nothing goes on")

    def test_until_done_goes_on_with_what_was_handed_off_until_it_is_done(self):
        github = self.act.github
        sha = self.repository(ONCE_SLOW)
        handed_off = self.act.run("push", ENDLESS, "endless.yml")
        self.assertIn("failure", handed_off.results.values(), "nothing goes on by itself")
        self.assertEqual(github.dispatches, [])
        own = {"id": 1}
        github.runs = First({**github.runs[1], "repository": own, "head_repository": own, "status": "completed"})
        played = self.call("schedule", "until-done.yml")
        self.assertEqual([step for step in played.steps if "checkout" in step], [])
        (dispatch,) = github.dispatches
        self.assertEqual(dispatch["workflow"], "endless.yml", played.told)
        self.assertEqual(dispatch["inputs"], {"resume-from": "run:1", "chain-depth": "1", "sha": sha})
        self.assertRegex(self.statuses(sha)["ll-loop/tidy"], "^pending: handed off: goes on in run")
        # As long as that one is not over, nobody starts it twice.
        self.assertIn("nothing waits", self.call("schedule", "until-done.yml").log)
        done = self.act.run("workflow_dispatch", ENDLESS, "endless.yml", inputs=dispatch["inputs"])
        self.assertIn("at the end of the second part", done.log, done.told)
        self.assertRegex(self.statuses(sha)["ll-loop/tidy"], "^success")
        self.assertIn("nothing waits", self.call("schedule", "until-done.yml").log)
        self.assertEqual(len(github.dispatches), 1)


class First(dict):
    """Runs, of which the first is always this one."""

    def __init__(self, first):
        super().__init__({1: first})
        self.first = first

    def __setitem__(self, number, run):
        super().__setitem__(number, self.first if number == 1 else run)


class Servers(OnAct):
    PAGE = ROOT / "docs/servers.md"

    def test_the_workflow_for_servers_of_the_family_of_act(self):
        pattern = r"^```yaml\n# \.gitea/workflows/tidy\.yml.*?\n(.*?)^```$"
        (text,) = re.findall(pattern, self.PAGE.read_text(), re.MULTILINE | re.DOTALL)
        sha = self.repository(CHECK, **{"src/good": ""})
        played = self.act.run("push", text, "tidy.yml")
        self.assert_results(played, tidy="success")
        self.assertEqual(self.statuses(sha), {"ll-loop/tidy": "success: success: `check` said yes"})


class Jobs(OnAct):
    def test_each_leg_of_a_matrix_goes_on_with_its_own_run(self):
        self.repository(FIX)
        played = self.act.run("push", RELAY, secrets={"ANTHROPIC_API_KEY": KEY})
        codes = {job: outputs.get("exit-code") for job, outputs in played.outputs("loop").items()}
        self.assertEqual(
            codes, {"relay/begin-1": "75", "relay/begin-2": "75", "relay/finish-1": "0", "relay/finish-2": "0"},
            played.told,
        )  # fmt: skip
        for number, leg in (1, "a"), (2, "b"):
            self.assertIn(f"at the end: of leg {leg}", played.of(f"relay/finish-{number}"))

    def test_two_steps_of_one_job_keep_what_each_has_done(self):
        self.repository(CHECK, **{"src/good": ""})
        shutil.copy(ROOT / "tests/artifacts/client.mjs", CLIENT)
        played = self.act.run("push", TWICE, env={"LL_ARTIFACT_CLIENT": CLIENT})
        self.assert_results(played, tidy="success", read="success")
        names = [played.outputs(step)["twice/tidy"]["artifact-name"] for step in ("first", "second")]
        self.assertEqual(len(set(names) - {""}), 2, names)
        # Read back by GitHub's own client.
        read = played.of("twice/read")
        for name in names:
            self.assertRegex(read, rf"{re.escape(name)} holds: .*\./summary\.md")
            self.assertRegex(read, rf"{re.escape(name)} holds: .*\.llz")
        self.assertEqual(re.findall(r"^with node \d+$", read, re.MULTILINE), ["with node 20", "with node 22"])

    def test_a_loop_that_does_not_exist(self):
        sha = self.repository(CHECK)
        played = self.act.run("push", ABSENT)
        self.assert_results(played, tidy="failure")
        outputs = played.outputs("loop")["absent/tidy"]
        self.assertEqual((outputs["outcome"], outputs["exit-code"]), ("invalid", "2"))
        self.assertRegex(played.log, r"tdiy")
        (said,) = self.statuses(sha).values()
        self.assertTrue(said.startswith("error: "), said)


class TimedOut(OnAct):
    def test_nothing_that_a_step_has_started_outlives_its_end(self):
        """act knows whole minutes, so this takes one."""
        sha = self.repository(SLOW)
        with concurrent.futures.ThreadPoolExecutor() as background:
            played = background.submit(self.act.run, "push", TIMED_OUT)
            self.assertTrue(within(30, lambda: processes(LONG)), "the loop did not begin")
            played = played.result()
        self.assert_results(played, tidy="failure")
        self.assertTrue(within(15, lambda: not processes(LONG)), processes(LONG))
        self.assertTrue(within(10, lambda: list(self.statuses(sha).values())[-1].startswith("error: ")))
        (said,) = self.statuses(sha).values()
        self.assertRegex(said, r"^error: .*killed.*`work`")


def within(seconds, is_so):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := is_so():
            return found
        time.sleep(0.05)
    return is_so()


def processes(word):
    """The command lines of processes that hold a word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if word in arguments:
            found.append(arguments)
    return found


if __name__ == "__main__":
    unittest.main()
