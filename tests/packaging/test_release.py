"""Releases: what is pinned, and the rehearsal of whole releases on a repository of our own."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
import tomllib
import unittest
from pathlib import Path

import yaml

from rehearsal import TARGETS, Failed, Run, Stage, packages
from runner import ROOT

IMAGE = "ghcr.io/little-loops/ll-loop@sha256:" + "ab" * 32
USES = re.compile(r"uses: little-loops/ll-loop\S*?@(\S+)")


@unittest.skipUnless(shutil.which("sha256sum"), "releases are made on Linux")
class Pin(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.tree = Path(directory.name) / "tree"
        self.archives = Path(directory.name) / "archives"
        for name in ("deliver", "setup", "docker", ".github"):
            shutil.copytree(ROOT / name, self.tree / name)
        shutil.copy(ROOT / "action.yml", self.tree)
        self.archives.mkdir()
        self.comment = [line for line in self.checksums() if line.startswith("#")]

    def checksums(self):
        return (self.tree / "setup/checksums.txt").read_text().splitlines()

    def pin(self, version, image=IMAGE, targets=TARGETS, earlier=None):
        shutil.rmtree(self.archives)
        self.archives.mkdir()
        for target in targets:
            (self.archives / f"ll-loop-{version}-{target}.tar.gz").write_text(f"{version} {target}")
        command = [self.tree / ".github/release/pin.sh", version, image, self.archives]
        if earlier is not None:
            command.append(self.archives / "earlier")
            command[-1].write_text("\n".join(earlier) + "\n")
        return subprocess.run(command, capture_output=True, text=True)

    def expected(self, version):
        return [
            f"{hashlib.sha256(f'{version} {target}'.encode()).hexdigest()}  ll-loop-{version}-{target}.tar.gz"
            for target in TARGETS
        ]

    def test_the_checksums_of_every_target_go_on_top(self):
        self.assertEqual(self.pin("v1.0.0").returncode, 0)
        self.assertEqual(self.pin("v1.1.0").returncode, 0)
        self.assertEqual(self.checksums()[len(self.comment) :][:4], self.expected("v1.1.0"))
        self.assertEqual(set(self.checksums()), {*self.comment, *self.expected("v1.1.0"), *self.expected("v1.0.0")})

    def test_the_checksums_of_other_releases_stay_once(self):
        self.pin("v1.0.0")
        earlier = self.expected("v1.10.0") + self.expected("v1.0.0") + self.expected("v1.9.0") + self.expected("v1.10.0")
        self.assertEqual(self.pin("v1.0.1", earlier=earlier).returncode, 0)
        versions = [re.search(r"ll-loop-(v[0-9.]+)-", line).group(1) for line in self.checksums()[len(self.comment) :]]
        self.assertEqual(versions, [v for v in ("v1.0.1", "v1.10.0", "v1.9.0", "v1.0.0") for _ in TARGETS])

    def test_an_archive_with_two_checksums_is_refused(self):
        other = [line.replace(line[:4], "0000", 1) for line in self.expected("v1.0.0")]
        refused = self.pin("v1.1.0", earlier=self.expected("v1.0.0") + other)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("two checksums for ll-loop-v1.0.0-", refused.stderr)

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

    def test_every_use_of_our_own_actions_is_pinned_and_nothing_else_changes(self):
        added = self.tree / ".github/workflows/added.yml"
        added.write_text(
            "      - uses: little-loops/ll-loop/setup@main # a comment\n"
            "      - uses: little-loops/ll-loop/docker@v1\n"
            "    uses: little-loops/ll-loop/.github/workflows/check.yml@0123abc\n"
            "      - uses: little-loops/ll-loop-tools@v1\n"
            "      - uses: actions/checkout@v6\n"
        )
        before = {path: path.read_text() for path in self.tree.rglob("*.yml")}
        self.assertEqual(self.pin("v1.2.3").returncode, 0)
        self.assertEqual(
            added.read_text(),
            "      - uses: little-loops/ll-loop/setup@v1.2.3 # a comment\n"
            "      - uses: little-loops/ll-loop/docker@v1.2.3\n"
            "    uses: little-loops/ll-loop/.github/workflows/check.yml@v1.2.3\n"
            "      - uses: little-loops/ll-loop-tools@v1\n"
            "      - uses: actions/checkout@v6\n",
        )
        for path, text in before.items():
            if path.parent.name == "workflows" and path != added:
                self.assertEqual(USES.sub("X", text), USES.sub("X", path.read_text()), path)
                self.assertEqual(set(USES.findall(path.read_text())) - {"v1.2.3"}, set(), path)

    def test_a_released_tree_is_clean_under_zizmor(self):
        self.pin("v1.0.0")
        checked = subprocess.run(
            ["zizmor", "--offline", "--pedantic", "--no-ignores", self.tree / "docker/action.yml"],
            capture_output=True, text=True,
        )  # fmt: skip
        self.assertEqual(checked.returncode, 0, checked.stdout)

    def test_a_release_with_something_missing_or_malformed_changes_nothing(self):
        before = self.checksums()
        self.assertEqual(self.pin("1.0.0").returncode, 1)
        self.assertEqual(self.pin("v01.0.0").returncode, 1)
        self.assertEqual(self.pin("v1.0.0", image="ghcr.io/little-loops/ll-loop:v1.0.0").returncode, 1)
        self.assertEqual(self.pin("v1.0.0", targets=TARGETS[:-1]).returncode, 1)
        self.assertEqual(self.checksums(), before)
        self.assertEqual(list(self.tree.rglob("*.new")), [])


@unittest.skipUnless(shutil.which("sha256sum"), "releases are made on Linux")
class Rehearsal(unittest.TestCase):
    def setUp(self):
        self.stage = self.new_stage()

    def new_stage(self):
        directory = tempfile.TemporaryDirectory(prefix="release ")
        self.addCleanup(directory.cleanup)
        return Stage(directory.name)

    def release(self, version, **changes):
        return Run(self.stage, version, **changes).all()

    def refused(self, job, run, *words, **how):
        before = self.state()
        with self.assertRaises(Failed) as failed:
            run.job(job, **how)
        for word in words:
            self.assertIn(word, str(failed.exception))
        self.assertIn("%0A", str(failed.exception), "an error has to say what to do, too")
        self.assertEqual(self.state(), before, "a refusal changes nothing")

    def state(self, stage=None):
        """Everything that others see: the tags and the releases."""
        stage = stage or self.stage
        return stage.tags(), json.loads(stage.releases.read_text())

    def versions(self):
        """What each moving tag is at."""
        tags = self.stage.tags()
        names = {commit: name for name, commit in tags.items() if name.count(".") == 2}
        return {name: names[commit] for name, commit in tags.items() if name.count(".") < 2}

    def assert_whole(self, version, commit, stage=None):
        """The commit of a release is what it has to be, and its assets are published."""
        stage = stage or self.stage
        tag = stage.tags()[version]
        self.assertEqual(stage.git("--git-dir", str(stage.remote), "rev-parse", f"{tag}^"), commit)
        for workflow in ("check", "fix", "nightly", "chain"):
            uses = USES.findall(stage.show(f".github/workflows/{workflow}.yml", tag))
            self.assertTrue(uses)
            self.assertEqual(set(uses), {version}, workflow)
        self.assertIn("image: docker://ghcr.io/little-loops/ll-loop@sha256:", stage.show("docker/action.yml", tag))
        (release,) = json.loads(stage.releases.read_text())[version]
        self.assertFalse(release["draft"])
        self.assertEqual(release["prerelease"], "-" in version)
        archives = {f"ll-loop-{version}-{target}.tar.gz" for target in TARGETS}
        extra = {"SHA256SUMS", "install.sh", "loop.schema.json", "test.schema.json", "policy.schema.json", "verdict.schema.json", "verdict-policy.schema.json", "board.schema.json", f"ll-loop-{version}.cdx.json"} | packages(version)
        self.assertEqual(set(release["assets"]), archives | extra)

    def pinned(self, version):
        """The versions in the checksums of a release, in their order."""
        lines = self.stage.show("setup/checksums.txt", version).splitlines()
        found = [match.group(1) for match in re.finditer(r"ll-loop-(v\S+?)-(?:x86_64|aarch64)", "\n".join(lines))]
        self.assertTrue(all(found.count(one) == len(TARGETS) for one in found))
        return list(dict.fromkeys(found))

    def test_a_history_of_releases(self):
        first = self.stage.git("rev-parse", "HEAD")
        run = self.release("v1.0.0")
        self.assert_whole("v1.0.0", first)
        self.assertEqual(self.versions(), {"v1": "v1.0.0", "v1.0": "v1.0.0"})
        made = {"install.sh", "ll-loop-v1.0.0.cdx.json", "loop.schema.json", "test.schema.json", "policy.schema.json", "verdict.schema.json", "verdict-policy.schema.json", "board.schema.json", "SHA256SUMS"} | packages("v1.0.0")
        self.assertEqual(sorted(run.attested), sorted(made))
        branch = self.stage.git("--git-dir", str(self.stage.remote), "rev-parse", "main")
        self.assertEqual(branch, first, "the branch carries no pins")

        second = self.stage.bump("1.1.0")
        self.release("v1.1.0")
        self.assert_whole("v1.1.0", second)
        self.assertEqual(self.versions(), {"v1": "v1.1.0", "v1.0": "v1.0.0", "v1.1": "v1.1.0"})
        self.assertEqual(self.pinned("v1.1.0"), ["v1.1.0", "v1.0.0"])

        # A backport, from a branch that somebody made of the tag: pinned files and all.
        self.stage.git("fetch", "--quiet", "--tags")
        self.stage.git("switch", "--quiet", "--create", "v1.0-fixes", "v1.0.0")
        backport = self.stage.bump("1.0.1", "v1.0-fixes")
        self.release("v1.0.1")
        self.assert_whole("v1.0.1", backport)
        self.assertEqual(self.versions(), {"v1": "v1.1.0", "v1.0": "v1.0.1", "v1.1": "v1.1.0"})
        self.assertEqual(self.pinned("v1.0.1"), ["v1.0.1", "v1.1.0", "v1.0.0"])

        self.stage.git("switch", "--quiet", "--detach", second)
        self.stage.bump("2.0.0")
        self.release("v2.0.0")
        candidate = self.stage.bump("2.1.0-rc.1")
        self.release("v2.1.0-rc.1")
        self.assert_whole("v2.1.0-rc.1", candidate)
        moved = {"v1": "v1.1.0", "v1.0": "v1.0.1", "v1.1": "v1.1.0", "v2": "v2.0.0", "v2.0": "v2.0.0"}
        self.assertEqual(self.versions(), moved, "no tag moves to a pre-release")
        self.assertEqual(self.pinned("v2.1.0-rc.1"), ["v2.1.0-rc.1", "v2.0.0", "v1.1.0", "v1.0.1", "v1.0.0"])

        releases = self.state()[1]
        self.assertEqual([v for v, (r,) in releases.items() if r.get("latest")], ["v2.0.0"])
        notes = releases["v1.0.1"][0]["notes"]
        blob = "https://github.com/little-loops/ll-loop/blob/v1.0.1/docs"
        self.assertIn(f"- what 1.0.1 brings [here]({blob}/ci.md#log) and [there](https://a.example/)\n", notes)
        self.assertIn(f"({blob}/install.md)", notes)
        self.assertNotIn("what is coming", notes)

    def test_a_backport_is_not_the_latest_release(self):
        self.release("v1.0.0")
        self.stage.bump("1.1.0")
        self.release("v1.1.0")
        self.stage.bump("1.0.1", "fixes")
        self.release("v1.0.1")
        self.assertEqual([v for v, (r,) in self.state()[1].items() if r.get("latest")], ["v1.1.0"])

    def test_a_release_that_is_run_again_changes_nothing(self):
        runs = []
        for crate in ("1.0.0", "1.1.0", "1.0.1", "2.0.0", "2.1.0-rc.1"):
            self.stage.bump(crate)
            runs.append(self.release(f"v{crate}"))
        before = self.state()
        for run in runs:
            run.job("publish")
            self.assertEqual(self.state(), before, run.version)

    def test_a_release_that_failed_anywhere_is_finished_by_another_attempt(self):
        """Each command that writes fails once: without an effect, and with one of which nobody hears."""
        clean = {}
        for after in (False, True):
            for failing in range(1, 20):
                stage = self.new_stage()
                Run(stage, "v1.0.0").all()
                commit = stage.bump("1.1.0")
                run = Run(stage, "v1.1.0")
                with self.subTest(failing=failing, after=after):
                    failed = False
                    try:
                        run.job("publish", failing=failing, after=after)
                    except Failed:
                        failed = True
                    writes = run.writes
                    if failed:
                        run.job("publish")
                    self.assert_whole("v1.1.0", commit, stage)
                    state = json.dumps([sorted(stage.tags()), self.state(stage)[1]])
                    self.assertEqual(clean.setdefault("state", state), state)
                    self.assertEqual(stage.tags()["v1"], stage.tags()["v1.1.0"])
                if writes < failing:
                    break
            else:
                self.fail("there is no end of writes")
            self.assertEqual(failing, 7, "create, upload, tag, publish and two moves are writes")

    def test_a_release_in_between_does_not_change_one_that_goes_on(self):
        self.release("v1.0.0")
        self.stage.bump("1.1.0")
        stopped = Run(self.stage, "v1.1.0")
        with self.assertRaises(Failed):
            stopped.job("publish", failing=4)  # to publish: draft, assets and tag are there
        tag = self.stage.tags()["v1.1.0"]
        self.assertEqual(self.versions(), {"v1": "v1.0.0", "v1.0": "v1.0.0"}, "nobody gets what is not published")
        self.stage.bump("1.0.1", "fixes")
        self.release("v1.0.1")
        self.assertEqual(self.versions(), {"v1": "v1.0.1", "v1.0": "v1.0.1"})
        stopped.job("publish")
        self.assertEqual(self.stage.tags()["v1.1.0"], tag)
        self.assertEqual(self.versions(), {"v1": "v1.1.0", "v1.0": "v1.0.1", "v1.1": "v1.1.0"})

    def test_a_tag_with_other_content_is_refused(self):
        self.release("v1.0.0")
        rebuilt = Run(self.stage, "v1.0.0", build="2")
        self.refused("publish", rebuilt, "the tag v1.0.0 exists with other content")
        self.stage.bump("1.0.0")
        self.refused("publish", Run(self.stage, "v1.0.0"), "the tag v1.0.0 exists with other content")

    def test_of_two_different_releases_of_one_version_only_one_gets_the_tag(self):
        run = Run(self.stage, "v1.0.0")
        other = self.stage.bump("1.0.0", "other")
        # Somebody pushes it after the check, right before the push of the tag.
        meanwhile = f"'{self.stage.env['REAL_GIT']}' --git-dir '{self.stage.remote}' update-ref refs/tags/v1.0.0 {other}"
        with self.assertRaisesRegex(Failed, "could not be pushed, or exists with other content"):
            run.job("publish", failing=3, meanwhile=meanwhile)
        self.assertEqual(self.stage.tags(), {"v1.0.0": other})
        self.assertTrue(self.state()[1]["v1.0.0"][0]["draft"])

    def test_a_tag_that_somebody_moved_in_between_is_read_again(self):
        self.release("v1.0.0")
        self.stage.bump("1.1.0")
        later = Run(self.stage, "v1.1.0")
        with self.assertRaises(Failed):
            later.job("publish", failing=4, after=True)  # it is published, and the tags have not moved
        self.stage.bump("1.0.1", "fixes")
        backport = Run(self.stage, "v1.0.1")
        # Right before the backport moves `v1` (its sixth write), v1.1.0 does.
        git = f"'{self.stage.env['REAL_GIT']}' --git-dir '{self.stage.remote}'"
        backport.job("publish", failing=6, meanwhile=f"{git} update-ref refs/tags/v1 {self.stage.tags()['v1.1.0']}")
        self.assertEqual(self.versions()["v1"], "v1.1.0")
        self.assertIn("v1 stays at v1.1.0", backport.log)

    def test_two_releases_at_once(self):
        self.release("v1.0.0")
        runs = []
        for crate, branch in (("1.1.0", "main"), ("1.0.1", "fixes"), ("1.0.2", "fixes2")):
            self.stage.bump(crate, branch)
            runs.append(Run(self.stage, f"v{crate}"))
        failures = []

        def publish(run):
            try:
                run.job("publish")
            except Failed as failed:
                failures.append(str(failed))

        threads = [threading.Thread(target=publish, args=(run,)) for run in runs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(self.versions(), {"v1": "v1.1.0", "v1.0": "v1.0.2", "v1.1": "v1.1.0"})
        for run in runs:
            self.assert_whole(run.version, run.commit)

    def test_what_check_refuses(self):
        run = Run(self.stage, "v1.0.0")
        for version in ("1.0.0", "v1.0", "v1.0.0.0", "v01.0.0", "latest", "v1.0.0;id", "v1.0.0-", "v1.0.0+build", "v1.0.0\nid", ""):
            self.refused("check", Run(self.stage, version), "is not a version")
        self.refused("check", Run(self.stage, "v1.2.0"), "Cargo.toml has the version 1.0.0, not 1.2.0")
        self.refused("check", run, "from a branch", GITHUB_REF_TYPE="tag", GITHUB_REF_NAME="v1.0.0")
        self.stage.bump("0.9.0")
        self.refused("check", Run(self.stage, "v0.9.0"), "below v1.0.0", "v1.0.0-rc.1")
        (self.stage.work / "Cargo.lock").write_text('name = "ll-loop"\nversion = "0.8.0"\n')
        (self.stage.work / "Cargo.toml").write_text('name = "ll-loop"\nversion = "1.0.0"\n')
        self.stage.git("commit", "--quiet", "--all", "--message", "half of it")
        self.stage.git("push", "--quiet", "origin", "HEAD:main")
        self.refused("check", Run(self.stage, "v1.0.0"), "Cargo.lock has the version 0.8.0", "cargo update --workspace")
        self.stage.bump("1.0.0")
        (self.stage.work / "CHANGELOG.md").write_text("## [Unreleased]\n")
        self.stage.git("commit", "--quiet", "--all", "--message", "no heading")
        self.stage.git("push", "--quiet", "origin", "HEAD:main")
        self.refused("check", Run(self.stage, "v1.0.0"), "CHANGELOG.md has no heading")
        self.stage.bump("1.0.0")
        self.release("v1.0.0")
        self.refused("check", Run(self.stage, "v1.0.0"), "the tag v1.0.0 exists already", "re-run the failed jobs")

    def test_a_pre_release_can_come_before_the_first_release(self):
        for crate in ("0.9.0-rc.1", "1.0.0-rc.1"):
            self.stage.bump(crate)
            self.release(f"v{crate}")
        self.assertEqual(set(self.stage.tags()), {"v0.9.0-rc.1", "v1.0.0-rc.1"})

    def test_without_the_key_nothing_is_changed(self):
        run = Run(self.stage, "v1.0.0")
        before = self.state()
        workflow = json.loads(json.dumps(run.workflow).replace("${{ secrets.RELEASE_KEY }}", ""))
        run.workflow = workflow
        self.refused("publish", run, "the secret RELEASE_KEY is missing", "docs/releasing.md#once")
        self.assertEqual(self.state(), before)

    def test_two_drafts_of_one_version_are_refused(self):
        draft = {"draft": True, "prerelease": False, "notes": "", "assets": {}}
        self.stage.releases.write_text(json.dumps({"v1.0.0": [draft, draft]}))
        self.refused("publish", Run(self.stage, "v1.0.0"), "more than one release for v1.0.0")

    def test_a_draft_with_something_else_in_it_is_not_published(self):
        draft = {"draft": True, "prerelease": False, "notes": "", "assets": {"evil.tar.gz": 1}}
        self.stage.releases.write_text(json.dumps({"v1.0.0": [draft]}))
        with self.assertRaisesRegex(Failed, "has other assets than this run made"):
            Run(self.stage, "v1.0.0").job("publish")
        self.assertTrue(self.state()[1]["v1.0.0"][0]["draft"])

    def test_a_major_tag_on_something_else_is_not_touched(self):
        self.release("v1.0.0")
        stray = self.stage.bump("1.1.0")
        self.stage.git("push", "--quiet", "--force", "origin", f"{stray}:refs/tags/v1")
        with self.assertRaisesRegex(Failed, "v1 is on .* not a release of it"):
            Run(self.stage, "v1.1.0").job("publish")
        self.assertEqual(self.stage.tags()["v1"], stray)

    def test_a_major_tag_that_was_deleted_does_not_come_back_on_an_older_version(self):
        self.release("v1.0.0")
        self.stage.bump("1.1.0")
        self.release("v1.1.0")
        self.stage.git("push", "--quiet", "origin", ":refs/tags/v1")
        self.stage.bump("1.0.1", "fixes")
        with self.assertRaisesRegex(Failed, "the tag v1 is gone, and v1.1.0 is later"):
            self.release("v1.0.1")
        self.assertNotIn("v1", self.stage.tags())


class Workflow(unittest.TestCase):
    """What release.yml itself says."""

    def setUp(self):
        self.workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())

    def test_the_targets_that_are_built_are_those_that_are_pinned(self):
        built = [leg["target"] for leg in self.workflow["jobs"]["programs"]["strategy"]["matrix"]["include"]]
        common = (ROOT / ".github/release/common.sh").read_text()
        self.assertEqual(re.findall(r"^  (\S+-\S+-\S+)$", common, re.MULTILINE), built)
        self.assertEqual(tuple(built), TARGETS)

    def test_the_image_is_made_for_both_architectures(self):
        legs = self.workflow["jobs"]["images"]["strategy"]["matrix"]["include"]
        self.assertEqual({leg["arch"] for leg in legs}, {"amd64", "arm64"})
        join = next(step for step in self.workflow["jobs"]["image"]["steps"] if step.get("id") == "join")
        for leg in legs:
            self.assertIn(f'"$IMAGE:$VERSION-{leg["arch"]}"', join["run"])

    def step(self, job, name, tools, **env):
        """Runs one step with stand-ins for its tools. Returns what became of it, and its directory."""
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        place = Path(directory.name)
        (place / "tools").mkdir()
        for tool, text in tools.items():
            (place / "tools" / tool).write_text(f"#!/bin/bash\nset -eu\n{text}")
            (place / "tools" / tool).chmod(0o755)
        for licence in ROOT.glob("LICENSE*"):
            shutil.copy(licence, place)
        (run,) = [step["run"] for step in self.workflow["jobs"][job]["steps"] if step.get("name") == name]
        env = {"PATH": f"{place}/tools:{os.environ['PATH']}", "VERSION": "v1.2.3", "GITHUB_OUTPUT": str(place / "output"), **env}
        return subprocess.run(["bash", "-e", "-c", run], cwd=place, env=env, text=True, capture_output=True), place

    def test_an_archive_has_the_program_at_its_top(self):
        cargo = 'mkdir -p "target/$TARGET/dist" && echo "$@" >"target/$TARGET/dist/ll-loop"\n'
        target = TARGETS[0]
        done, place = self.step("programs", "Build", {"cargo": cargo}, TARGET=target)
        self.assertEqual(done.returncode, 0, done.stderr)
        with tarfile.open(place / f"dist/ll-loop-v1.2.3-{target}.tar.gz") as archive:
            self.assertEqual(sorted(archive.getnames()), ["LICENSE-APACHE", "LICENSE-MIT", "ll-loop"])
            called = archive.extractfile("ll-loop").read().decode()
        self.assertEqual(called, f"build --profile dist --locked --target {target}\n")

    def test_an_image_without_one_of_the_architectures_is_refused(self):
        for architectures, code in ((["amd64", "arm64"], 0), (["amd64", "arm64", "unknown"], 0), (["amd64"], 1), ([], 1)):
            manifests = [{"platform": {"os": "linux", "architecture": name}} for name in architectures]
            index = json.dumps({"digest": "sha256:" + "ab" * 32, "manifests": manifests})
            docker = f"case $* in *inspect*) cat <<'END'\n{index}\nEND\n;; *login*) cat >login ;; esac\n"
            env = {"IMAGE": "ghcr.io/x", "TOKEN": "secret", "GITHUB_ACTOR": "octocat"}
            done, place = self.step("image", "Join the architectures", {"docker": docker}, **env)
            self.assertEqual(done.returncode, code, architectures)
            output = place / "output"
            self.assertEqual(output.read_text() if output.exists() else "", "" if code else "digest=sha256:" + "ab" * 32 + "\n")
            self.assertEqual((place / "login").read_text(), "secret\n", "the token comes by standard input")

    @unittest.skipUnless(shutil.which("sha256sum"), "releases are made on Linux")
    def test_a_tool_that_nobody_looked_at_lists_nothing(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        cache = Path(home.name) / "registry/cache/index"
        cache.mkdir(parents=True)
        version = re.search(r"TOOL=(\S+)", (ROOT / ".github/release/sbom.sh").read_text()).group(1)
        (cache / f"cargo-cyclonedx-{version}.crate").write_text("another one")
        cargo = Path(home.name) / "cargo"
        cargo.write_text(f'#!/bin/sh\necho "$@" >"{home.name}/called"\n')
        cargo.chmod(0o755)
        env = {"PATH": f"{home.name}:{os.environ['PATH']}", "CARGO_HOME": home.name, "RUNNER_TEMP": home.name}
        command = [ROOT / ".github/release/sbom.sh", f"{home.name}/sbom.json"]
        refused = subprocess.run(command, env=env, text=True, capture_output=True)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("is not the cargo-cyclonedx that was looked at", refused.stderr)
        self.assertRegex((Path(home.name) / "called").read_text(), rf"--locked .*cargo-cyclonedx@{version}$")
        self.assertFalse((Path(home.name) / "sbom.json").exists())

    def test_only_the_jobs_that_push_or_publish_may_write(self):
        for name, job in self.workflow["jobs"].items():
            may = {permission for permission, level in job["permissions"].items() if level == "write"}
            self.assertEqual("contents" in may, name == "publish", name)
            self.assertEqual("packages" in may, name in ("images", "image"), name)
            secrets = "secrets." in json.dumps(job)
            self.assertEqual(secrets, name == "publish", name)
        self.assertEqual(self.workflow["jobs"]["publish"]["environment"], "release")

    def test_binstall_finds_the_archives_of_a_release(self):
        manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]
        meta = manifest["metadata"]["binstall"]
        known = {"repo": manifest["repository"], "name": manifest["name"], "version": "1.2.3", "archive-suffix": ".tar.gz"}
        urls = {re.sub(r"\{ (\S+) \}", lambda m: {**known, "target": t}[m.group(1)], meta["pkg-url"]) for t in TARGETS}
        script = (ROOT / "setup/install.sh").read_text()
        downloads = re.search(r"RELEASES=(\S+)", script).group(1)
        self.assertEqual(urls, {f"{downloads}/v1.2.3/ll-loop-v1.2.3-{target}.tar.gz" for target in TARGETS})
        # `tgz` is what binstall calls a tar.gz, and the program is at the top of ours.
        self.assertEqual((meta["pkg-fmt"], meta["bin-dir"]), ("tgz", "{ bin }{ binary-ext }"))

    def test_the_crate_has_what_a_build_needs_and_nothing_of_the_packaging(self):
        listed = subprocess.run(
            ["cargo", "package", "--list", "--allow-dirty", "--offline"], cwd=ROOT, text=True, capture_output=True, check=True
        ).stdout.splitlines()
        for needed in ("Cargo.toml", "Cargo.lock", "README.md", "LICENSE-MIT", "LICENSE-APACHE", "src/main.rs"):
            self.assertIn(needed, listed)
        allowed = r"src/|benches/|catalog/|docs/diagnostics\.md$|Cargo\.(toml|lock)|README\.md$|CHANGELOG\.md$|LICENSE-|\.cargo_vcs_info\.json$"
        self.assertEqual([name for name in listed if not re.match(allowed, name)], [])


if __name__ == "__main__":
    unittest.main()
