"""What the release workflow writes, on a copy of the tree, and that the actions understand it."""

import hashlib
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml

from runner import ROOT

IMAGE = "ghcr.io/little-loops/ll-loop@sha256:" + "ab" * 32
TARGETS = (
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
)


@unittest.skipUnless(shutil.which("sha256sum"), "releases are made on Linux")
class Pin(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.tree = Path(directory.name) / "tree"
        self.archives = Path(directory.name) / "archives"
        for name in ("setup", "docker", ".github/release"):
            shutil.copytree(ROOT / name, self.tree / name)
        self.archives.mkdir()
        self.comment = [line for line in self.checksums() if line.startswith("#")]

    def checksums(self):
        return (self.tree / "setup/checksums.txt").read_text().splitlines()

    def pin(self, version, image=IMAGE, targets=TARGETS):
        shutil.rmtree(self.archives)
        self.archives.mkdir()
        for target in targets:
            (self.archives / f"ll-loop-{version}-{target}.tar.gz").write_text(f"{version} {target}")
        command = [self.tree / ".github/release/pin.sh", version, image, self.archives]
        return subprocess.run(command, capture_output=True, text=True)

    def expected(self, version):
        return [
            f"{hashlib.sha256(f'{version} {target}'.encode()).hexdigest()}  ll-loop-{version}-{target}.tar.gz"
            for target in TARGETS
        ]

    def test_the_checksums_of_every_target_go_on_top(self):
        self.assertEqual(self.pin("v1.0.0").returncode, 0)
        self.assertEqual(self.pin("v1.1.0").returncode, 0)
        self.assertEqual(self.checksums(), self.comment + self.expected("v1.1.0") + self.expected("v1.0.0"))

    def test_the_file_is_one_that_sha256sum_checks(self):
        self.pin("v1.0.0")
        subprocess.run(
            ["sha256sum", "--check", "--strict", self.tree / "setup/checksums.txt"],
            cwd=self.archives, check=True, capture_output=True,
        )  # fmt: skip

    def test_the_container_action_runs_the_published_image_by_digest(self):
        before = yaml.safe_load((self.tree / "docker/action.yml").read_text())
        self.assertEqual(self.pin("v1.0.0").returncode, 0)
        after = yaml.safe_load((self.tree / "docker/action.yml").read_text())
        self.assertEqual(after["runs"].pop("image"), f"docker://{IMAGE}")
        before["runs"].pop("image")
        self.assertEqual(after, before)

    def test_a_released_action_is_clean_under_zizmor(self):
        self.pin("v1.0.0")
        checked = subprocess.run(
            ["zizmor", "--offline", "--pedantic", "--no-ignores", self.tree / "docker/action.yml"],
            capture_output=True, text=True,
        )  # fmt: skip
        self.assertEqual(checked.returncode, 0, checked.stdout)

    def test_a_release_with_something_missing_or_malformed_changes_nothing(self):
        before = self.checksums()
        self.assertEqual(self.pin("1.0.0").returncode, 1)
        self.assertEqual(self.pin("v1.0.0", image="ghcr.io/little-loops/ll-loop:v1.0.0").returncode, 1)
        self.assertEqual(self.pin("v1.0.0", targets=TARGETS[:-1]).returncode, 1)
        self.assertEqual(self.checksums(), before)
        self.assertEqual(list(self.tree.rglob("*.new")), [])

    def test_a_version_is_pinned_once(self):
        self.assertEqual(self.pin("v1.0.0").returncode, 0)
        again = self.pin("v1.0.0")
        self.assertEqual(again.returncode, 1)
        self.assertIn("has v1.0.0 already", again.stderr)


if __name__ == "__main__":
    unittest.main()
