"""The packages of a release, made of archives, installed by pip and npm from local files, and used by pre-commit."""

import hashlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import unittest
from pathlib import Path

import yaml

from rehearsal import made, packages
from runner import ROOT

PROGRAM = os.environ.get("LL_LOOP_BIN")
VERSION = "v" + tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["version"]
LOOP = """\
name: tidy
initial: check
states:
  check: {action: "sleep ${context.seconds}", on_yes: done, on_no: done}
  done: {terminal: true}
context: {seconds: 0}
"""


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not PROGRAM:
            raise RuntimeError("LL_LOOP_BIN is not set: run `tests/run packaging`, which builds the program")
        directory = tempfile.TemporaryDirectory(prefix="ll loop ")
        cls.addClassCleanup(directory.cleanup)
        cls.directory = Path(directory.name)
        archives = cls.directory / "archives"
        archives.mkdir()
        for target in made.TARGETS:
            with tarfile.open(archives / f"ll-loop-{VERSION}-{target}.tar.gz", "w:gz") as tar:
                if target == made.own_target():
                    tar.add(PROGRAM, "ll-loop")
                else:
                    tar.addfile(tarfile.TarInfo("ll-loop"), io.BytesIO(b""))
        cls.archives, cls.out = archives, cls.directory / "packages"
        cls.make(cls.out)

    @classmethod
    def make(cls, out, version=VERSION):
        script = ROOT / ".github/release/packages.py"
        return subprocess.run([sys.executable, script, version, cls.archives, out], check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1767225600"})

    def call(self, *argv, **options):
        done = subprocess.run(argv, text=True, capture_output=True, timeout=300, **options)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        return done.stdout

    def project(self):
        project = Path(tempfile.mkdtemp(dir=self.directory))
        (project / "sub dir/.loops/web").mkdir(parents=True)
        (project / ".loops").mkdir()
        for path in (".loops/tidy.yaml", "sub dir/.loops/web/test.yml"):
            (project / path).write_text(LOOP)
        return project

    def test_the_same_archives_give_the_same_packages(self):
        again = self.directory / "again"
        self.make(again)
        digests = [{path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in out.iterdir()} for out in (self.out, again)]
        self.assertEqual(*digests)
        self.assertEqual(set(digests[0]), packages(VERSION))

    def test_versions_are_written_as_python_writes_them(self):
        for version, expected in (("v1.2.3", "1.2.3"), ("v1.2.3-rc.1", "1.2.3rc1"), ("v1.0.0-beta.12", "1.0.0b12")):
            self.assertEqual(made.python_version(version), expected)
        for version in ("v1.2.3-nightly", "v1.2.3-rc"):
            with self.assertRaises(SystemExit):
                made.python_version(version)

    def test_pip_installs_the_wheel(self):
        venv = self.directory / "venv"
        self.call(sys.executable, "-m", "venv", venv)
        self.call(venv / "bin/pip", "install", "--no-index", "--find-links", self.out, "ll-loop")
        self.assertEqual(self.call(venv / "bin/ll-loop", "version"), f"ll-loop {VERSION[1:]}\n")
        self.call(venv / "bin/ll-loop", "run", "tidy", cwd=self.project())
        (metadata,) = venv.glob(f"lib/python3*/site-packages/ll_loop-{made.python_version(VERSION)}.dist-info/METADATA")
        self.assertIn("License-Expression: MIT OR Apache-2.0\n", metadata.read_text())
        self.call(venv / "bin/pip", "check")
        self.call(venv / "bin/pip", "uninstall", "--yes", "ll-loop")
        self.assertFalse((venv / "bin/ll-loop").exists())

    def npm(self, *options):
        project = self.project()
        (project / "package.json").write_text('{"private": true}')
        system, processor = made.TARGETS[made.own_target()][1:]
        files = [self.out / f"little-loops-ll-loop-{system}-{processor}-{VERSION[1:]}.tgz", self.out / f"ll-loop-{VERSION[1:]}.tgz"]
        self.call("npm", "install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", *options, *files, cwd=project)
        return project

    @unittest.skipUnless(shutil.which("npm"), "needs Node.js")
    def test_npm_installs_the_wrapper_and_the_program(self):
        project = self.npm()
        self.assertEqual(self.call("npx", "--offline", "ll-loop", "version", cwd=project), f"ll-loop {VERSION[1:]}\n")
        command = project / "node_modules/.bin/ll-loop"
        for argv in ([command], ["node", "-e", "process.execve = undefined; process.argv.splice(1, 0, 'x'); require('ll-loop/ll-loop.js')", "--"]):
            with self.subTest(argv=argv[0]):
                done = subprocess.run([*argv, "run", "no such loop"], cwd=project, text=True, capture_output=True)
                self.assertEqual(done.returncode, 2, done.stderr)
                # Who ends the wrapper ends the run, and gets its code.
                running = subprocess.Popen([*argv, "run", "tidy", "--context", "seconds=60"], cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                end = time.monotonic() + 60
                while not list((project / ".loops/.running").glob("*")) and time.monotonic() < end:
                    time.sleep(0.05)
                time.sleep(1)
                running.send_signal(signal.SIGTERM)
                self.assertEqual(running.wait(60), 143)

    @unittest.skipUnless(shutil.which("npm"), "needs Node.js")
    def test_a_wrapper_without_its_program_says_so(self):
        project = self.npm()
        shutil.rmtree(project / "node_modules/@little-loops")
        done = subprocess.run([project / "node_modules/.bin/ll-loop", "version"], text=True, capture_output=True)
        self.assertEqual(done.returncode, 69)
        self.assertIn("is not installed", done.stderr)

    def test_the_shell_files_are_those_of_the_program(self):
        with tarfile.open(self.out / f"ll-loop-{VERSION}-shell.tar.gz") as tar:
            names = tar.getnames()
            top = f"ll-loop-{VERSION}-shell"
            self.assertLessEqual({f"{top}/completions/{name}" for name in made.SHELLS.values()}, set(names))
            self.assertIn(f"{top}/man/man1/ll-loop-run.1", names)
            page = tar.extractfile(f"{top}/man/man1/ll-loop.1").read().decode()
        self.assertIn("2026-01-01", page)

    def hook(self, project, hook, path):
        """Runs a hook in a repository, and returns how it ended and what it said."""
        repository = self.directory / f"hooks-{hook}"
        env = {
            **os.environ, "HOME": str(self.directory), "PRE_COMMIT_HOME": str(self.directory / "pre-commit"), "PIP_FIND_LINKS": self.out.as_uri(),
            "PATH": f"{path}:{os.environ['PATH']}", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        }  # fmt: skip

        def git(*arguments, cwd):
            return self.call("git", "-c", "user.name=dev", "-c", "user.email=dev@example.com", *arguments, cwd=cwd, env=env)

        if not repository.exists():
            repository.mkdir()
            for name in (".pre-commit-hooks.yaml", "pyproject.toml"):
                shutil.copy(ROOT / name, repository)
            git("init", "--quiet", cwd=repository)
            git("add", "--all", cwd=repository)
            git("commit", "--quiet", "--message", "hooks", cwd=repository)
        commit = git("rev-parse", "HEAD", cwd=repository).strip()
        config = {"repos": [{"repo": str(repository), "rev": commit, "hooks": [{"id": hook}]}]}
        (project / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
        git("init", "--quiet", cwd=project)
        git("add", "--all", cwd=project)
        done = subprocess.run(
            ["pre-commit", "run", "--all-files", "--color", "never"], cwd=project, env=env, text=True, capture_output=True, timeout=300
        )
        return done.returncode, done.stdout + done.stderr

    def hooked(self, hook, path):
        project = self.project()
        for ignored in (".loops/vendor/x/y/z.yaml", ".loops/tests/tidy.test.yaml", "other.yaml"):
            (project / ignored).parent.mkdir(parents=True, exist_ok=True)
            (project / ignored).write_text("- no loop\n")
        code, said = self.hook(project, hook, path)
        self.assertEqual(code, 0, said)
        self.assertIn("Passed", said)
        for broken in (".loops/tidy.yaml", "sub dir/.loops/web/test.yml"):
            text = (project / broken).read_text()
            (project / broken).write_text(text.replace("on_yes: done", "on_yes: dnoe"))
            code, said = self.hook(project, hook, path)
            self.assertEqual(code, 1, said)
            self.assertIn("dnoe", said)
            (project / broken).write_text(text)

    def test_the_hook_checks_loops_with_the_program_on_path(self):
        path = self.directory / "path"
        path.mkdir(exist_ok=True)
        (path / "ll-loop").unlink(missing_ok=True)
        (path / "ll-loop").symlink_to(PROGRAM)
        self.hooked("ll-loop-validate", path)

    def test_the_other_hook_installs_the_wheel(self):
        self.hooked("ll-loop-validate-wheel", "/nowhere")

    def test_the_hook_names_this_version(self):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        version = made.python_version(VERSION)
        self.assertEqual((project["version"], project["dependencies"]), (version, [f"ll-loop=={version}"]))

    def test_the_targets_are_those_of_a_release(self):
        common = (ROOT / ".github/release/common.sh").read_text()
        self.assertEqual(re.findall(r"^  (\S+-\S+-\S+)$", common, re.MULTILINE), list(made.TARGETS))


if __name__ == "__main__":
    unittest.main()
