"""setup/install.sh, executed as the actions execute it, against a release of our own on the loopback address."""

import hashlib
import http.server
import io
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
import threading
import unittest
from pathlib import Path

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


class Install(unittest.TestCase):
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

    def test_a_branch_without_checksums_says_to_use_a_release(self):
        self.assert_refused(self.install(), "pins no release", "little-loops/ll-loop@v")

    def test_a_checksum_that_is_none_does_not_count(self):
        self.publish(pinned="anything")
        self.assert_refused(self.install({"version": "v1.2.3"}), "no checksum")

    def test_a_runner_without_a_build_is_refused(self):
        self.publish()
        for system, arch in (("Windows", "X64"), ("Linux", "ARM"), ("", "")):
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
        for script in ("setup/install.sh", "docker/run.sh", ".github/release/pin.sh", "tests/run", ".ci/run"):
            self.assertTrue((ROOT / script).stat().st_mode & stat.S_IXUSR, script)


if __name__ == "__main__":
    unittest.main()
