"""setup/install.sh, executed as the actions execute it, against a release of our own on the loopback address."""

import hashlib
import http.server
import io
import os
import re
import shlex
import shutil
import stat
import subprocess
import tarfile
import tempfile
import threading
import unittest
from pathlib import Path

import yaml

from runner import ROOT, Runner

LINUX = "x86_64-unknown-linux-musl"
TARGETS = {
    ("Linux", "X64"): LINUX,
    ("Linux", "ARM64"): "aarch64-unknown-linux-musl",
    ("macOS", "X64"): "x86_64-apple-darwin",
    ("macOS", "ARM64"): "aarch64-apple-darwin",
}


class Release(http.server.ThreadingHTTPServer):
    """Serves archives by path, counts what was asked for, and can fail a number of times first."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.asked, self.failures = {}, [], 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        body = self.server.files.get(self.path)
        if self.server.failures > 0:
            self.server.failures -= 1
            self.send_error(503)
        elif body is None:
            self.send_error(404)
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_):
        pass


def archive(text):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        entry = tarfile.TarInfo("ll-loop")
        content = f"#!/bin/sh\necho '{text}'\n".encode()
        entry.size, entry.mode = len(content), 0o755
        tar.addfile(entry, io.BytesIO(content))
    return data.getvalue()


def path_of(result):
    """What the step added to PATH."""
    return result.steps["install"].files["GITHUB_PATH"].read_text().splitlines()


class Fixture(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ll loop ")  # a space, as on runners that have one
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.runner = Runner(self.directory / "runner")
        self.action = self.directory / "action"
        shutil.copytree(ROOT / "setup", self.action / "setup")
        self.release = Release()
        self.addCleanup(self.release.server_close)
        self.addCleanup(self.release.shutdown)
        self.env = {"LL_LOOP_DOWNLOAD_URL": self.release.url}

    def publish(self, version="v1.2.3", target=LINUX, pinned=None):
        """Puts an archive on the server and its checksum into checksums.txt, the newest on top."""
        asset = f"ll-loop-{version}-{target}.tar.gz"
        body = archive(f"{version} {target}")
        self.release.files[f"/{version}/{asset}"] = body
        checksums = self.action / "setup/checksums.txt"
        entry = f"{pinned or hashlib.sha256(body).hexdigest()}  {asset}\n"
        checksums.write_text(entry + checksums.read_text())

    def install(self, inputs=None, **env):
        return self.runner.run(self.action / "setup", inputs, {**self.env, **env})

    def assert_refused(self, result, *words):
        self.assertEqual(result.code, 1, result.log)
        errors = [line for line in result.log.splitlines() if line.startswith("::error ")]
        self.assertEqual(len(errors), 1, result.log)
        for word in words:
            self.assertIn(word, errors[0])
        self.assertIn("%0A", errors[0], "an error has to say what to do, too")
        self.assertEqual(result.outputs["bin"], "")

    def assert_installed(self, result, says):
        self.assertEqual(result.code, 0, result.log)
        program = result.outputs["bin"]
        self.assertEqual(subprocess.check_output([program], text=True).strip(), says)
        return program


class Install(Fixture):
    def test_the_version_of_the_action_is_installed(self):
        self.publish("v1.2.2")
        self.publish("v1.2.3")
        result = self.install()
        self.assert_installed(result, f"v1.2.3 {LINUX}")
        self.assertEqual(result.outputs["version"], "v1.2.3")

    def test_it_is_on_the_path_of_later_steps(self):
        self.publish()
        result = self.install()
        self.assertEqual(path_of(result), [os.path.dirname(result.outputs["bin"])])

    def test_the_root_action_leaves_the_path_alone(self):
        self.publish()
        shutil.copy(ROOT / "action.yml", self.action)
        result = self.runner.run(self.action, {"loop": "x"}, self.env)
        self.assertEqual(result.steps["install"].code, 0)
        self.assertEqual(result.steps["run"].log, f"v1.2.3 {LINUX}\n")
        self.assertEqual(path_of(result), [])

    def test_every_target_gets_its_own_archive(self):
        for target in TARGETS.values():
            self.publish(target=target)
        for (system, arch), target in TARGETS.items():
            with self.subTest(target=target):
                self.assert_installed(self.install(RUNNER_OS=system, RUNNER_ARCH=arch), f"v1.2.3 {target}")

    def test_an_older_version_can_be_named_with_and_without_v(self):
        self.publish("v1.0.0-rc.1")
        self.publish("v1.2.3")
        for version in ("v1.0.0-rc.1", "1.0.0-rc.1"):
            self.assert_installed(self.install({"version": version}), f"v1.0.0-rc.1 {LINUX}")

    def test_a_prerelease_can_be_the_version_of_the_action(self):
        self.publish("v2.0.0-rc.1")
        self.assert_installed(self.install(), f"v2.0.0-rc.1 {LINUX}")

    def test_another_file_than_the_pinned_one_is_refused_and_not_kept(self):
        self.publish(pinned="0" * 64)
        self.assert_refused(self.install(), "was refused", "expected sha256 0000")
        self.assertEqual([path for path in self.runner.tools.rglob("*") if path.is_file()], [])
        self.assertEqual([path for path in self.runner.temp.glob("*.tar.gz*")], [])

    def test_without_a_checksum_nothing_is_even_downloaded(self):
        self.publish(target="aarch64-apple-darwin")
        self.assert_refused(self.install(), "no checksum", LINUX)
        self.assert_refused(self.install({"version": "v9.9.9"}), "no checksum", "v9.9.9")
        self.assertEqual(self.release.asked, [])

    def test_a_checksum_that_is_none_does_not_count(self):
        self.publish(pinned="anything")
        self.assert_refused(self.install({"version": "v1.2.3"}), "no checksum")

    def test_windows_is_refused_in_a_sentence(self):
        self.publish()
        for version in ("", "v1.2.3", "source"):
            result = self.install({"version": version}, RUNNER_OS="Windows")
            self.assert_refused(result, "ll-loop does not run on Windows", "ubuntu-24.04", "WSL")

    def test_a_runner_without_a_build_is_refused(self):
        self.publish()
        for system, arch in (("Linux", "ARM"), ("", "")):
            self.assert_refused(self.install(RUNNER_OS=system, RUNNER_ARCH=arch), "no ll-loop for this runner", system)

    def test_a_version_that_is_none_is_refused(self):
        self.publish()
        for version in ("latest", "../../v1.2.3", "v1.2.3/../v9", "v1.2", "v1.2.3\nbin=/bin/sh", "$(touch pwned)"):
            self.assert_refused(self.install({"version": version}), "is not a version")
        self.assertEqual(self.release.asked, [])
        self.assertFalse((self.runner.workspace / "pwned").exists())

    def test_the_second_time_comes_from_the_cache(self):
        self.publish()
        self.install()
        self.assert_installed(self.install(), f"v1.2.3 {LINUX}")
        self.assertEqual(len(self.release.asked), 1)

    def test_a_cache_that_was_tampered_with_is_replaced(self):
        self.publish()
        self.install()
        (cached,) = [path for path in self.runner.tools.rglob("*.tar.gz")]
        cached.write_bytes(archive("evil"))
        self.assert_installed(self.install(), f"v1.2.3 {LINUX}")
        self.assert_installed(self.install(), f"v1.2.3 {LINUX}")
        self.assertEqual(len(self.release.asked), 2)

    def test_a_cache_that_cannot_be_written_to_costs_a_download(self):
        self.publish()
        (self.runner.tools / "ll-loop").write_text("a file where the directory should be")
        self.assert_installed(self.install(), f"v1.2.3 {LINUX}")

    def test_a_server_that_stumbles_is_asked_again(self):
        self.publish()
        self.release.failures = 2
        self.assert_installed(self.install(), f"v1.2.3 {LINUX}")
        self.assertEqual(len(self.release.asked), 3)

    def test_a_file_that_is_not_there_is_asked_for_once(self):
        self.publish()
        self.release.files.clear()
        self.assert_refused(self.install(), "could not be downloaded", "404", "LL_LOOP_DOWNLOAD_URL")
        self.assertEqual(len(self.release.asked), 1)

    def test_a_mirror_has_to_be_https(self):
        self.publish()
        for mirror in ("http://example.com", "ftp://example.com", "file:///tmp"):
            self.assert_refused(self.install(LL_LOOP_DOWNLOAD_URL=mirror), "is not an https address")

    def test_a_program_that_is_here_needs_no_download(self):
        program = self.directory / "my build"
        program.write_text("#!/bin/sh\necho mine\n")
        program.chmod(0o755)
        result = self.install(LL_LOOP_BINARY=str(program))
        self.assertEqual(self.assert_installed(result, "mine"), str(program))
        self.assertEqual(result.outputs["version"], "local")
        (directory,) = path_of(result)
        self.assertEqual(subprocess.check_output([f"{directory}/ll-loop"], text=True), "mine\n")
        self.assertEqual(self.release.asked, [])

    def test_a_program_can_be_given_relative_to_the_workspace(self):
        program = self.runner.workspace / "target/ll-loop"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho mine\n")
        program.chmod(0o755)
        self.assertEqual(self.install(LL_LOOP_BINARY="target/ll-loop").outputs["bin"], str(program))

    def test_a_program_that_is_not_here_is_refused(self):
        self.assert_refused(self.install(LL_LOOP_BINARY="/nowhere/ll-loop"), "/nowhere/ll-loop", "not a program")

    def test_nothing_of_the_environment_runs_in_our_shells(self):
        self.publish()
        trap = self.directory / "trap.sh"
        trap.write_text(f"touch '{self.directory}/pwned'\n")
        result = self.install(
            BASH_ENV=str(trap), ENV=str(trap), **{"BASH_FUNC_curl%%": f"() {{ touch '{self.directory}/pwned'; }}"}
        )
        self.assert_installed(result, f"v1.2.3 {LINUX}")
        self.assertFalse((self.directory / "pwned").exists())

    def test_the_scripts_are_executable(self):
        release = [str(path) for path in (ROOT / ".github/release").glob("*.sh")]
        for script in ("setup/install.sh", "docker/run.sh", "tests/run", ".ci/run", *release):
            self.assertTrue((ROOT / script).stat().st_mode & stat.S_IXUSR, script)


RUSTC = """#!/bin/sh
echo "host: x86_64-unknown-linux-gnu"
"""
# Tells where and with what it was called, and makes a program that says what its source says.
CARGO = """#!/bin/bash
set -eu
if [[ -n ${FAKE_CARGO_FAILS:-} ]]; then
  echo "error: rustc 1.70.0 is not supported by the following package" >&2
  exit 101
fi
{ echo "$@"; env; } >>"$SEEN"
while [[ $1 != --target-dir ]]; do shift; done
mkdir -p "$2/x86_64-unknown-linux-gnu/release"
{ echo '#!/bin/sh'; echo "echo $(cat src/main.rs)"; } >"$2/x86_64-unknown-linux-gnu/release/ll-loop"
chmod +x "$2/x86_64-unknown-linux-gnu/release/ll-loop"
"""


class FromSource(Fixture):
    """On a branch, or with `version: source`, ll-loop is built from the folder of the action."""

    def setUp(self):
        super().setUp()
        shutil.copy(ROOT / "Cargo.toml", self.action)
        shutil.copy(ROOT / "action.yml", self.action)
        (self.action / "src").mkdir()
        (self.action / "src/main.rs").write_text("built")
        (self.action / "target").mkdir()
        (self.action / "target/stale").write_text("stale")
        self.tools = self.directory / "tools"
        self.tools.mkdir()
        for name, text in (("cargo", CARGO), ("rustc", RUSTC)):
            (self.tools / name).write_text(text)
            (self.tools / name).chmod(0o755)
        self.seen = self.directory / "seen"
        self.env |= {"PATH": f"{self.tools}:{os.environ['PATH']}", "SEEN": str(self.seen)}

    def called(self):
        return [line for line in self.seen.read_text().splitlines() if line.startswith("build ")] if self.seen.exists() else []

    def test_a_branch_is_built_and_a_notice_says_so(self):
        result = self.install()
        self.assert_installed(result, "built")
        self.assertEqual(result.outputs["version"], "source")
        (notice,) = [line for line in result.log.splitlines() if line.startswith("::notice ")]
        self.assertIn("belongs to no release", notice)
        self.assertIn("version: source", notice)
        self.assertEqual(path_of(result), [os.path.dirname(result.outputs["bin"])])
        (call,) = self.called()
        self.assertIn("--locked", call)
        self.assertEqual(self.release.asked, [])

    def test_a_source_that_was_asked_for_needs_no_notice(self):
        self.publish()
        result = self.install({"version": "source"})
        self.assert_installed(result, "built")
        self.assertNotIn("::notice", result.log)

    def test_a_release_is_not_built(self):
        self.publish()
        self.assert_installed(self.install(), f"v1.2.3 {LINUX}")
        self.assertEqual(self.called(), [])

    def test_the_root_action_builds_as_well(self):
        result = self.runner.run(self.action, {"loop": "x"}, self.env)
        self.assertEqual(result.steps["run"].log, "built\n")

    def test_the_workflow_of_the_document_needs_nothing_else(self):
        page = (ROOT / "docs/ci.md").read_text().split("### Before the first release")[1]
        workflow = yaml.safe_load(re.search(r"```yaml\n(.*?)```", page, re.DOTALL).group(1))
        checkout, step = workflow["jobs"]["tidy"]["steps"]
        self.assertEqual(step["uses"], "little-loops/ll-loop@main")
        self.assertNotIn("env", step)
        result = self.runner.run(self.action, step["with"], self.env)
        self.assertEqual(result.steps["run"].log, "built\n")

    def test_it_is_built_once_in_a_job(self):
        first, second = self.install(), self.install()
        self.assertEqual(first.outputs["bin"], second.outputs["bin"])
        self.assertEqual(len(self.called()), 1)
        # Another source is another program: a second action in the job, or a change.
        (self.action / "src/main.rs").write_text("built anew")
        self.assert_installed(self.install(), "built anew")

    def test_nothing_is_taken_from_what_outlives_the_job(self):
        self.install()
        kept = [path for path in self.runner.tools.rglob("*") if path.is_file()]
        self.assertEqual(kept, [], "the tool cache is open to other jobs, and a program has no checksum to be known by")
        self.assertTrue(Path(self.install().outputs["bin"]).is_relative_to(self.runner.temp))

    def test_what_is_above_the_workspace_and_in_the_environment_does_not_decide_how(self):
        shutil.copytree(self.action, self.runner.workspace / ".ll-loop")
        for name in (".cargo/config.toml", "rust-toolchain.toml"):
            path = self.runner.workspace / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("[build]\nrustc-wrapper = './evil'\n")
        (self.tools / "rustc").write_text(RUSTC + 'pwd >>"$SEEN.rustc"\n')
        theirs = {
            "RUSTFLAGS": "-D warnings", "RUSTC_WRAPPER": "sccache", "CARGO_TARGET_DIR": "/nowhere",
            "CARGO_BUILD_TARGET": "wasm32-wasip1", "CARGO_PROFILE_RELEASE_LTO": "fat",
        }  # fmt: skip
        result = self.runner.run(self.runner.workspace / ".ll-loop/setup", {}, {**self.env, **theirs})
        self.assert_installed(result, "built")
        seen = self.seen.read_text()
        self.assertIn("RUSTFLAGS=-C target-feature=+crt-static\n", seen, "static, so that it runs in any image")
        for name in theirs.keys() - {"RUSTFLAGS"}:
            self.assertNotIn(f"\n{name}=", seen)
        for place in (re.search("^PWD=(.*)$", seen, re.MULTILINE).group(1), Path(f"{self.seen}.rustc").read_text().strip()):
            self.assertTrue(Path(place).is_relative_to(self.runner.temp), place)

    def test_what_lies_beside_the_source_is_not_taken_along(self):
        (self.tools / "cargo").write_text(CARGO.replace("while", 'find . >>"$SEEN"\nwhile', 1))
        self.install()
        self.assertIn("./src/main.rs\n", self.seen.read_text())
        self.assertNotIn("stale", self.seen.read_text())

    def test_the_source_stays_as_it_is(self):
        before = sorted(self.action.rglob("*"))
        self.install()
        self.assertEqual(sorted(self.action.rglob("*")), before)

    def test_without_cargo_a_sentence_says_what_to_do(self):
        bare = self.directory / "bare"
        bare.mkdir()
        for tool in ("bash", "dirname", "basename", "cat", "sed"):
            (bare / tool).symlink_to(shutil.which(tool))
        result = self.install(PATH=str(bare))
        self.assert_refused(result, "needs Rust", "rustup toolchain install stable", "1.95", "LL_LOOP_BINARY")

    def test_a_build_that_fails_is_an_error_and_leaves_nothing(self):
        self.assert_refused(self.install(FAKE_CARGO_FAILS="yes"), "could not be built", "Rust 1.95 or later")
        self.assert_installed(self.install(), "built")

    def test_the_log_of_a_build_that_fails_is_closed(self):
        log = self.install(FAKE_CARGO_FAILS="yes").log
        self.assertLess(log.index("::group::"), log.index("is not supported by"))
        self.assertLess(log.index("is not supported by"), log.index("::endgroup::"))
        self.assertLess(log.index("::endgroup::"), log.index("::error "))

    def test_an_action_without_its_source_says_so(self):
        (self.action / "Cargo.toml").unlink()
        self.assert_refused(self.install(), "no source of ll-loop", "or a release")


@unittest.skipUnless(os.uname().sysname == "Linux", "the other stages leave no build to go on from")
class TheRealCargo(unittest.TestCase):
    def test_this_very_source_is_built_and_runs_a_loop(self):
        built = os.environ.get("LL_LOOP_BIN")
        if not built:
            self.fail("LL_LOOP_BIN is not set: run `tests/run packaging`, which builds the program")
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        # The crates that the stage has compiled are used again, which takes its profile and its flags.
        tools = Path(directory.name) / "tools"
        tools.mkdir()
        profile, target = Path(built).parent.name, Path(built).parent.parent.name
        compiled = ROOT / os.environ["LL_COMPILED"]
        (tools / "cargo").write_text(
            "#!/bin/bash\nset -eu\nwords=() previous=\n"
            '[[ $RUSTFLAGS == "-C target-feature=+crt-static" ]] || exit 9\n'
            'for word in "$@"; do\n'
            "  if [[ $previous == --target-dir ]]; then place=$word; fi\n"
            f'  if [[ $word == --release ]]; then words+=(--profile {profile}); else words+=("$word"); fi\n'
            "  previous=$word\ndone\n"
            f'mkdir -p "$place/{target}/{profile}" "$place/{target}/release" "$place/{profile}"\n'
            "for part in deps build .fingerprint; do\n"
            f'  cp -al {shlex.quote(str(compiled / target / profile))}/$part "$place/{target}/{profile}/"\n'
            f'  cp -al {shlex.quote(str(compiled / profile))}/$part "$place/{profile}/"\n'
            "done\n"
            f'RUSTFLAGS=$LL_TEST_FLAGS {shlex.quote(shutil.which("cargo"))} "${{words[@]}}"\n'
            f'ln "$place/{target}/{profile}/ll-loop" "$place/{target}/release/"\n'
        )
        (tools / "cargo").chmod(0o755)
        runner = Runner(Path(directory.name) / "runner")
        (runner.workspace / ".loops").mkdir()
        (runner.workspace / ".loops/hello.yaml").write_text(
            "name: hello\ninitial: look\nstates:\n  look: {action: test -d .loops, on_yes: done, on_no: failed}\n"
            "  done: {terminal: true}\n  failed: {terminal: true}\n"
        )
        home = {name: os.environ[name] for name in ("HOME", "CARGO_HOME", "RUSTUP_HOME") if name in os.environ}
        flags = {"RUSTFLAGS": "-D warnings", "LL_TEST_FLAGS": os.environ["LL_TEST_FLAGS"]}
        env = {**home, "PATH": f"{tools}:{os.environ['PATH']}", **flags}
        result = runner.run(ROOT, {"loop": "hello", "token": ""}, env)
        self.assertEqual(result.code, 0, result.log[-2000:])
        self.assertEqual(result.outputs["outcome"], "success")
        self.assertIn("::notice title=ll-loop is built from its source::", result.log)
        program = next(runner.temp.glob("ll-loop-source/*/ll-loop"))
        libraries = subprocess.run(["ldd", program], text=True, capture_output=True)
        self.assertNotIn("=>", libraries.stdout, "static, so that it runs in any image")


if __name__ == "__main__":
    unittest.main()
