"""install.sh of a release, made as the release makes it and run by sh, against a release on the loopback address."""

import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest
from pathlib import Path

import yaml

from rehearsal import TARGETS, packages
from runner import ROOT
from test_install import Release

MACHINES = {
    ("Linux", "x86_64"): "x86_64-unknown-linux-musl",
    ("Linux", "aarch64"): "aarch64-unknown-linux-musl",
    ("Darwin", "x86_64"): "x86_64-apple-darwin",
    ("Darwin", "arm64"): "aarch64-apple-darwin",
}
GH = """#!/bin/sh
echo "$@" >>"$SEEN"
case "$1 $2 $3" in
  "attestation verify --help") exit "${FAKE_GH_OLD:-0}" ;;
  "attestation verify "*) exit "${FAKE_GH_REFUSES:-0}" ;;
  "auth status ") exit "${FAKE_GH_OUT:-0}" ;;
esac
exit 2
"""


def archive(text):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        content = f"#!/bin/sh\necho '{text}'\n".encode()
        entry = tarfile.TarInfo("ll-loop")
        entry.size, entry.mode = len(content), 0o755
        tar.addfile(entry, io.BytesIO(content))
    return data.getvalue()


class Assets(unittest.TestCase):
    """The assets of a release, made as the release makes them."""

    VERSION = "v1.2.3"

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ll loop ")
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.archives = self.directory / "archives"
        self.archives.mkdir()
        for target in TARGETS:
            (self.archives / f"ll-loop-{self.VERSION}-{target}.tar.gz").write_bytes(archive(f"{self.VERSION} {target}"))
        self.assets = self.directory / "assets"
        self.put_together('{"bomFormat": "CycloneDX", "components": [{"name": "clap"}]}').check_returncode()
        self.tools = self.directory / "tools"
        self.tools.mkdir()
        self.home = self.directory / "home"
        self.home.mkdir()
        self.seen = self.directory / "seen"

    def put_together(self, sbom):
        path = self.directory / "sbom.json"
        path.write_text(sbom)
        script = ROOT / ".github/release/assets.sh"
        made = self.directory / "packages"
        made.mkdir(exist_ok=True)
        for name in packages(self.VERSION):
            (made / name).write_text(name)
        command = [script, self.VERSION, self.archives, made, path, self.assets, self.directory / "notes.md"]
        return subprocess.run(command, text=True, capture_output=True)

    def tool(self, name, text):
        path = self.tools / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o755)


@unittest.skipUnless(shutil.which("sha256sum"), "releases are made on Linux")
class Installer(Assets):
    def setUp(self):
        super().setUp()
        self.release = Release()
        self.addCleanup(self.release.server_close)
        self.addCleanup(self.release.shutdown)
        for path in self.archives.iterdir():
            self.release.files[f"/{self.VERSION}/{path.name}"] = path.read_bytes()
        self.script = self.assets / "install.sh"
        # Only what is named here is on PATH, so that a `gh` of this machine is not.
        for tool in ("sed", "mktemp", "rm", "curl", "sha256sum", "cut", "tar", "gzip", "chmod", "mkdir", "cp", "mv", "sh"):
            (self.tools / tool).symlink_to(shutil.which(tool))
        self.machine("Linux", "x86_64")
        self.program = self.home / ".local/bin/ll-loop"

    def machine(self, system, architecture):
        self.tool("uname", f'#!/bin/sh\n[ "$1" = -s ] && echo "{system}" || echo "{architecture}"\n')

    def run_script(self, *arguments, script=None, **env):
        environment = {
            "PATH": str(self.tools), "HOME": str(self.home), "LL_LOOP_DOWNLOAD_URL": self.release.url,
            "TMPDIR": str(self.directory), "SEEN": str(self.seen), **env,
        }  # fmt: skip
        return subprocess.run(
            ["/bin/sh", script or self.script, *arguments], env=environment, text=True, capture_output=True, timeout=60
        )

    def assert_installed(self, done, says="v1.2.3 x86_64-unknown-linux-musl", program=None):
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(subprocess.check_output([program or self.program], text=True).strip(), says)

    def assert_refused(self, done, *words):
        self.assertEqual(done.returncode, 1, done.stdout)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual([path for path in self.home.rglob("*") if path.is_file()], [], "nothing is installed")
        self.assertEqual(list(self.directory.glob("tmp.*")), [], "nothing is left behind")

    def test_the_program_of_the_release_is_installed(self):
        done = self.run_script()
        self.assert_installed(done)
        self.assertIn(f'export PATH="{self.home}/.local/bin:$PATH"', done.stdout)
        self.assertIn("Who built it was not checked", done.stdout)
        self.assertEqual(list(self.directory.glob("tmp.*")), [])

    def test_every_machine_gets_its_own_program(self):
        for (system, architecture), target in MACHINES.items():
            with self.subTest(target=target):
                self.machine(system, architecture)
                self.assert_installed(self.run_script(), f"v1.2.3 {target}")

    def test_it_goes_where_it_is_told_to(self):
        into = self.directory / "some where"
        done = self.run_script("--to", str(into), PATH=f"{self.tools}:{into}")
        self.assert_installed(done, program=into / "ll-loop")
        self.assertNotIn("export PATH", done.stdout)
        self.assertFalse(self.program.exists())

    def test_a_program_that_is_there_is_replaced_whole(self):
        self.program.parent.mkdir(parents=True)
        self.program.write_text("old")
        self.assert_installed(self.run_script())
        self.assertEqual([path.name for path in self.program.parent.iterdir()], ["ll-loop"])

    def test_a_program_that_does_not_run_takes_the_place_of_none(self):
        for path in self.archives.iterdir():
            path.write_bytes(archive("'; exit 1; '"))
            self.release.files[f"/{self.VERSION}/{path.name}"] = path.read_bytes()
        self.put_together('{"bomFormat": "CycloneDX", "components": [{"name": "clap"}]}').check_returncode()
        self.assert_refused(self.run_script(), "does not run on this machine")

    def test_another_file_than_that_of_the_release_is_refused(self):
        for path in self.release.files:
            self.release.files[path] = archive("evil")
        self.assert_refused(self.run_script(), "was refused", "expected sha256")

    def test_a_file_that_is_not_there_is_said(self):
        self.release.files.clear()
        self.assert_refused(self.run_script(), "could not be downloaded")

    def test_windows_is_refused_in_a_sentence(self):
        for system in ("MINGW64_NT-10.0-26100", "MSYS_NT-10.0", "CYGWIN_NT-10.0"):
            self.machine(system, "x86_64")
            self.assert_refused(self.run_script(), "ll-loop does not run on Windows", "WSL")
        self.assertEqual(self.release.asked, [])

    def test_a_machine_without_a_build_is_refused(self):
        for system, architecture in (("Linux", "armv7l"), ("FreeBSD", "amd64")):
            self.machine(system, architecture)
            self.assert_refused(self.run_script(), f"no ll-loop for {system} on {architecture}", "With Rust")

    def test_what_github_attests_is_asked_where_that_can_be(self):
        self.tool("gh", GH)
        done = self.run_script("--require-attestation")
        self.assert_installed(done)
        self.assertIn("attestation: built by the release workflow", done.stdout)
        verify = self.seen.read_text().splitlines()[-1]
        self.assertRegex(verify, r"^attestation verify \S.*\.tar\.gz --repo little-loops/ll-loop --signer-workflow ")
        self.assertIn("--signer-workflow little-loops/ll-loop/.github/workflows/release.yml", verify)

    def test_what_github_does_not_attest_is_refused(self):
        self.tool("gh", GH)
        self.assert_refused(self.run_script(FAKE_GH_REFUSES="1"), "no attestation")

    def test_a_gh_that_cannot_tell_is_like_none(self):
        self.tool("gh", GH)
        for trouble in ("FAKE_GH_OLD", "FAKE_GH_OUT"):
            with self.subTest(trouble=trouble):
                self.assert_refused(self.run_script("--require-attestation", **{trouble: "1"}), "cannot be checked", "gh auth login")
                self.assertIn("was not checked", self.run_script(**{trouble: "1"}).stdout)
                self.program.unlink()
        (self.tools / "gh").unlink()
        self.assert_refused(self.run_script("--require-attestation"), "cannot be checked")

    def test_a_script_that_was_cut_off_does_nothing(self):
        text = self.script.read_text()
        for at in range(0, len(text) - len('main "$@"\n'), 97):
            cut = self.directory / "cut.sh"
            cut.write_text(text[:at])
            self.run_script(script=cut)
            self.assertFalse(self.program.exists(), text[:at][-80:])
        self.assertEqual(self.release.asked, [])

    def test_the_template_is_no_script_of_a_release(self):
        self.assert_refused(self.run_script(script=ROOT / ".github/release/install.sh"), "template", "releases")

    def test_arguments_that_are_none_are_refused(self):
        self.assert_refused(self.run_script("--prefix", "/usr"), "unknown argument", "--to DIR")
        self.assert_refused(self.run_script("--to"), "needs a directory")
        self.assert_refused(self.run_script(HOME=""), "HOME is not set")

    def test_a_mirror_has_to_be_https(self):
        for mirror in ("http://example.com", "file:///tmp"):
            self.assert_refused(self.run_script(LL_LOOP_DOWNLOAD_URL=mirror), "does not begin with https://")

    def test_the_checksums_of_a_release_are_of_every_other_asset(self):
        checked = subprocess.run(
            ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=self.assets, text=True, capture_output=True, check=True
        ).stdout.splitlines()
        others = {path.name for path in self.assets.iterdir()} - {"SHA256SUMS"}
        self.assertEqual({line.removesuffix(": OK") for line in checked}, others)
        self.assertEqual(len(others), len(TARGETS) + len(packages(self.VERSION)) + 8)

    def test_a_list_of_components_that_is_none_is_refused(self):
        for text in ("{}", '{"bomFormat": "CycloneDX", "components": []}', ""):
            self.assertNotEqual(self.put_together(text).returncode, 0, text)


# Takes the assets of a release for what is at their address, whatever else it is told.
CURL = """#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in --output) into=$2; shift ;; https://*) url=$1 ;; esac
  shift
done
name=${url#https://github.com/little-loops/ll-loop/releases/download/v1.0.0/}
exec cp "$ASSETS/$name" "${into:-$name}"
"""


@unittest.skipUnless(shutil.which("sha256sum"), "releases are made on Linux")
class Documented(Assets):
    """What docs/install.md tells its readers to type, typed."""

    VERSION = "v1.0.0"

    def test_the_commands_work_as_they_are_written(self):
        for name, text in (("curl", CURL), ("gh", GH), ("docker", '#!/bin/sh\necho "$0" "$@" >>"$SEEN"\n')):
            self.tool(name, text)
        blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs/install.md").read_text(), re.MULTILINE | re.DOTALL)
        self.assertEqual(len(blocks), 6)
        work = self.directory / "work"
        work.mkdir()
        path = f"{self.tools}:{self.home}/.local/bin:{os.environ['PATH']}"
        env = {"PATH": path, "HOME": str(self.home), "ASSETS": str(self.assets), "SEEN": str(self.seen)}
        for block in blocks:
            done = subprocess.run(["bash", "-euc", block], cwd=work, env=env, text=True, capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 0, f"{block}{done.stderr}")
        says = subprocess.check_output([self.home / ".local/bin/ll-loop"], text=True)
        self.assertRegex(says, "^v1.0.0 ")
        seen = self.seen.read_text()
        self.assertIn(f"attestation verify {self.home}/.local/bin/ll-loop --repo little-loops/ll-loop", seen)
        self.assertIn("attestation verify oci://ghcr.io/little-loops/ll-loop:v1.0.0", seen)

    def test_what_the_page_names_is_what_a_release_has(self):
        page = (ROOT / "docs/install.md").read_text()
        named = set(re.findall(r"releases/download/v1.0.0/([\w.-]+)", page)) | set(re.findall(r"ll-loop-v1\.0\.0[\w.-]+", page))
        self.assertEqual(named - {path.name for path in self.assets.iterdir()}, set())
        image = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["env"]["IMAGE"]
        self.assertEqual(set(re.findall(r"ghcr\.io/[\w/-]+", page)), {image})


if __name__ == "__main__":
    unittest.main()
