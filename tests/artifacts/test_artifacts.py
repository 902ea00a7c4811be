"""`ll-loop artifact` against a GitHub of our own, and against GitHub's own client on both sides."""

import json
import os
import random
import re
import shutil
import ssl
import stat
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

from github import DOWNLOAD_SIG, TOKEN, UPLOAD_SIG, GitHub, Response, sha256  # noqa: E402

PROGRAM = os.environ["LL_LOOP_BIN"]
# Where `npm ci` has put GitHub's client.
CLIENT = Path(os.environ["LL_ARTIFACT_CLIENT"])
MIB = 1 << 20
MEMORY = 20_000_000


class Job(unittest.TestCase):
    """A job of run 42 of `o/r`."""

    style = "azure"

    def setUp(self):
        self.github = GitHub(self.style)
        self.addCleanup(self.github.close)
        self.directory = Path(tempfile.mkdtemp(prefix="ll-artifacts-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def file(self, path, content="", mode=0o644):
        path = self.directory / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(mode)
        return path

    def ll_loop(self, *arguments, code=0, tokens=True, env=None, wrapper=()):
        """Runs `ll-loop artifact …` and returns what it printed."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.directory),
            "LL_RETRY_WAIT": "1ms",
            **self.github.environment(tokens=tokens),
            **(env or {}),
        }
        command = [*wrapper, PROGRAM, "artifact", *map(str, arguments)]
        done = subprocess.run(command, cwd=self.directory, env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.check_secrets(done)
        return done.stdout + done.stderr

    def check_secrets(self, done):
        """Signatures stand in masks alone, and tokens nowhere."""
        shown = "\n".join(line for line in done.stdout.splitlines() if not line.startswith("::add-mask::"))
        for text in (shown, done.stderr):
            self.assertNotIn("sig=", text)
            for secret in (UPLOAD_SIG, DOWNLOAD_SIG, TOKEN, "eyJ"):
                self.assertNotIn(secret, text)

    def tree(self, directory):
        directory = self.directory / directory
        return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if not p.is_dir()}

    def official(self, *arguments):
        """Runs GitHub's own client and returns its result."""
        shutil.copy(ROOT / "tests/artifacts/client.mjs", CLIENT)
        environment = {
            "PATH": os.environ["PATH"],
            "GITHUB_WORKSPACE": str(self.directory),
            "RUNNER_TEMP": str(self.directory),
            **self.github.environment(),
        }
        command = ["node", str(CLIENT / "client.mjs"), *map(str, arguments)]
        done = subprocess.run(command, cwd=self.directory, env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout.splitlines()[-1])


class BothWays(Job):
    """What one client stores, the other one fetches."""

    def files(self):
        noise = random.Random(7)
        self.file("report/summary.md", "all is well\n")
        self.file("report/.hidden/state.json", '{"state":"check"}')
        self.file("report/run", "#!/bin/sh\n", 0o755)
        self.file("report/ünïcode name.txt", "ä")
        self.file("report/empty")
        self.file("report/block.bin", noise.randbytes(8 * MIB))
        self.file("report/large.bin", noise.randbytes(20 * MIB))
        return self.tree("report")

    def test_the_official_client_fetches_what_ours_stores(self):
        files = self.files()
        said = self.ll_loop("upload", "ours", "report")
        self.assertIn("stored `ours`: 7 files", said)
        for command in (["download", "ours"], ["download-of", "42", "ours"]):
            with self.subTest(command):
                to = f"official-{command[0]}"
                result = self.official(*command, self.directory / to)
                self.assertFalse(result.get("digestMismatch", False))
                self.assertIn(f"id {result['id']}", said)
                self.assertEqual(self.tree(to), files)
        self.assertEqual(self.github.refusals, [])

    def test_ours_fetches_what_the_official_client_stores(self):
        files = self.files()
        paths = [self.directory / "report" / name for name in files]
        stored = self.official("upload", "theirs", self.directory / "report", *paths)
        said = self.ll_loop("download", "theirs", "--to", "here")
        self.assertIn(f"fetched `theirs`: 7 files, {stored['size']} bytes, sha256:{stored['digest']}", said)
        self.assertEqual(self.tree("here"), files)
        # Another job, of another run, and without the runner's tokens.
        self.ll_loop("download", "theirs", "--run", "42", "--to", "there", tokens=False, env={"GITHUB_RUN_ID": "77"})
        self.assertEqual(self.tree("there"), files)
        self.assertEqual(self.github.refusals, [])

    def test_modes_come_back(self):
        self.files()
        self.ll_loop("upload", "ours", "report")
        self.ll_loop("download", "ours", "--to", "here")
        self.assertEqual(stat.S_IMODE((self.directory / "here/run").stat().st_mode), 0o755)
        self.assertEqual(stat.S_IMODE((self.directory / "here/summary.md").stat().st_mode), 0o644)


class Act(Job):
    """The same with a server that knows nothing but what it must."""

    style = "act"

    def test_what_is_stored_comes_back(self):
        large = self.file("report/large.bin", random.Random(7).randbytes(20 * MIB)).read_bytes()
        self.file("report/small", "x")
        self.ll_loop("upload", "ours", "report", "--retention-days", "5")
        self.ll_loop("download", "ours", "--to", "here")
        self.assertEqual(self.tree("here"), {"large.bin": large, "small": b"x"})
        self.assertEqual(self.github.refusals, [])

    def test_what_is_there_is_not_replaced(self):
        self.file("report/x", "old")
        self.ll_loop("upload", "ours", "report")
        self.file("report/x", "new")
        said = self.ll_loop("upload", "ours", "report", code=4)
        self.assertIn("they share this name", said)
        self.ll_loop("download", "ours", "--to", "here")
        self.assertEqual(self.tree("here"), {"x": b"old"})


class Requests(Job):
    """What is asked, and what is shown of it."""

    def test_signatures_are_masked_in_both_forms(self):
        self.file("report/x", "x")
        out = self.ll_loop("upload", "ours", "report")
        masks = ["::add-mask::c2VjcmV0%252Bsig%253D", "::add-mask::c2VjcmV0+sig="]
        self.assertEqual(out.splitlines()[:2], masks)
        out = self.ll_loop("download", "ours", "--to", "here")
        self.assertIn("::add-mask::ZG93bmxvYWQ+sig==", out.splitlines()[:2])
        plain = self.ll_loop("download", "ours", "--to", "here", env={"GITHUB_ACTIONS": ""})
        self.assertNotIn("::add-mask::", plain)

    def test_an_end_is_as_late_as_the_repository_allows(self):
        self.file("report/x", "x")
        self.ll_loop("upload", "kept", "report")
        self.ll_loop("upload", "short", "report", "--retention-days", "400")
        requests = {artifact.name: artifact.request for artifact in self.github.artifacts.values()}
        self.assertEqual((requests["kept"]["version"], requests["kept"].get("expires_at")), (4, None))
        self.assertRegex(requests["short"]["expires_at"], r"^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$")

    def test_a_run_stands_for_the_artifact_of_its_last_attempt(self):
        self.github.store("logs", {"x": "logs"}, run_id=7)
        self.github.store("ll-loop-tidy-test-r7-a2", {"x": "second"}, run_id=7)
        self.github.store("ll-loop-tidy-test-r7-a1", {"x": "first"}, run_id=7)
        self.github.store("ll-loop-tidy-test-r6-a9", {"x": "older"}, run_id=6)
        for what, tokens in (("run:7", True), ("run:7", False)):
            with self.subTest(what, tokens=tokens):
                self.ll_loop("download", what, "--to", "here", tokens=tokens)
                self.assertEqual(self.tree("here"), {"x": b"second"})
        # The runner's service knows the artifacts of its own run.
        self.github.requests.clear()
        self.ll_loop("download", "run:7", "--to", "here", env=self.github.environment(run_id=7))
        self.assertEqual(self.github.count("/repos/"), 0)

    def test_the_latest_run_is_the_one_that_stored_last(self):
        self.github.store("ll-loop-tidy-r6-a1", {"x": "older"}, run_id=6)
        self.github.store("ll-loop-tidy-r7-a1", {"x": "newer"}, run_id=7)
        self.github.store("ll-loop-tidy-r8-a1", {"x": "fork"}, run_id=8, head_repository_id=2)
        self.github.store("ll-loop-tidy-r9-a1", {"x": "gone"}, run_id=9, expired=True)
        for number in range(120):
            self.github.store(f"logs-{number}", {"x": "logs"}, run_id=10)
        self.ll_loop("download", "run:latest", "--to", "here", tokens=False)
        self.assertEqual(self.tree("here"), {"x": b"newer"})

    def test_a_name_is_looked_for_in_this_run_first(self):
        self.github.store("state", {"x": "this"}, run_id=42)
        self.github.store("state", {"x": "other"}, run_id=50)
        self.ll_loop("download", "state", "--to", "service")
        self.ll_loop("download", "state", "--to", "rest", tokens=False)
        self.assertEqual((self.tree("service"), self.tree("rest")), ({"x": b"this"}, {"x": b"this"}))
        self.ll_loop("download", "state", "--run", "50", "--to", "named")
        self.assertEqual(self.tree("named"), {"x": b"other"})
        self.github.store("elsewhere", {"x": "older"}, run_id=50)
        self.ll_loop("download", "elsewhere", "--to", "older")
        self.assertEqual(self.tree("older"), {"x": b"older"})

    def test_what_a_fork_stored_is_refused(self):
        self.github.store("ll-loop-tidy-r8-a1", {"x": "fork"}, run_id=8, head_repository_id=2)
        for what in ("run:8", "ll-loop-tidy-r8-a1"):
            said = self.ll_loop("download", what, "--to", "here", code=2)
            self.assertIn("was made by code that is not that of `o/r`", said)
        self.assertEqual(self.github.count("GET /blob/"), 0)
        self.assertFalse((self.directory / "here").exists())


class Trouble(Job):
    """The service is down, refuses, or gives something else than was stored."""

    busy = Response(503, {"code": "unavailable", "msg": "try later"})
    upload = ["CreateArtifact", "comp=block&", "comp=blocklist", "FinalizeArtifact"]
    download = ["ListArtifacts", "GetSignedArtifactURL", "GET /blob/"]
    rest = ["/actions/artifacts?name=", "/zip", "GET /blob/"]

    def test_trouble_that_passes_is_overcome(self):
        self.file("report/x", "x")
        for match in [*self.upload, *self.download]:
            self.github.fault(match, times=2, response=self.busy)
            self.github.fault(match)
            self.ll_loop("upload", f"after {re.sub('[^a-zA-Z]', '', match)}", "report")
            self.ll_loop("download", f"after {re.sub('[^a-zA-Z]', '', match)}", "--to", "here")
        for match in self.rest:
            self.github.fault(match, times=2, response=self.busy)
            self.github.fault(match)
            self.ll_loop("download", "after zip", "--to", "here", code=1, tokens=False)
            self.ll_loop("download", "after GETblob", "--to", "here", tokens=False)
        self.assertEqual([fault.times for fault in self.github.faults], [0] * len(self.github.faults))
        self.assertEqual(self.tree("here"), {"x": b"x"})

    def test_trouble_that_stays_is_69(self):
        self.file("report/x", "x")
        for match in self.upload:
            self.github.faults.clear()
            self.github.fault(match, times=99, response=self.busy)
            said = self.ll_loop("upload", "ours", "report", code=69)
            self.assertIn("githubstatus.com", said)
        self.github.faults.clear()
        self.ll_loop("upload", "ours", "report")
        for match, tokens in [(m, True) for m in self.download] + [(m, False) for m in self.rest]:
            self.github.faults.clear()
            self.github.fault(match, times=99)
            self.ll_loop("download", "ours", "--to", "here", code=69, tokens=tokens)
        self.assertFalse((self.directory / "here").exists())

    def test_a_body_that_ends_early_is_fetched_again(self):
        self.github.store("state", {"x": "x" * 5000})
        self.github.fault("GET /blob/", times=2, cut=True)
        self.ll_loop("download", "state", "--to", "here")
        self.assertEqual(self.tree("here"), {"x": b"x" * 5000})

    def check_refusal(self, match, response, code, *says, tokens=True):
        self.github.faults.clear()
        self.github.fault(match, times=99, response=response)
        arguments = ["upload", "new", "report"] if match in self.upload else ["download", "state", "--to", "here"]
        before = self.github.count(match)
        said = self.ll_loop(*arguments, code=code, tokens=tokens)
        for text in says:
            self.assertIn(text, said)
        self.assertEqual(self.github.count(match), before + 1, "it was tried again")
        self.assertFalse((self.directory / "here").exists())

    def test_a_refusal_is_final_and_says_what_to_do(self):
        self.file("report/x", "x")
        self.github.store("state", {"x": "x"})
        exists = Response(409, {"code": "already_exists", "msg": "an artifact with this name already exists"})
        self.check_refusal("CreateArtifact", exists, 4, "has stored `new` already", "share this name", "never changes", "pass `key`")
        quota = Response(403, {"code": "permission_denied", "msg": "insufficient usage to create artifact"})
        self.check_refusal("CreateArtifact", quota, 4, "no storage left", "delete old artifacts")
        route = Response(404, {"code": "bad_route", "msg": "no handler"})
        self.check_refusal("CreateArtifact", route, 69, "no artifact service of version 4", "upload-artifact@v3")
        self.check_refusal("FinalizeArtifact", Response(400, {"msg": "size mismatch"}), 4, "400: size mismatch")
        denied = Response(403, {"message": "Resource not accessible by integration"})
        permission = "permissions: { actions: read }"
        self.check_refusal("/actions/artifacts?name=", denied, 4, "may not do", permission, tokens=False)
        gone = Response(410, {"message": "Artifact has expired"})
        self.check_refusal("/zip", gone, 1, "the artifact `state` has expired", "retention-days", tokens=False)
        self.check_refusal("/zip", Response(401, {"message": "Bad credentials"}), 4, "GITHUB_TOKEN", tokens=False)

    def test_what_is_not_there_is_1(self):
        self.assertIn("there is no artifact `state`", self.ll_loop("download", "state", "--to", "here", code=1))
        self.github.store("logs", {"x": "x"}, run_id=7)
        for what in ("run:7", "run:latest", "run:42"):
            self.assertIn("begins with `ll-loop-`", self.ll_loop("download", what, "--to", "here", code=1))
        said = self.ll_loop("download", "state", "--repo", "a/b", "--to", "here", code=1)
        self.assertIn("whether the token may see the repository", said)

    def test_another_digest_is_an_error(self):
        self.github.store("state", {"x": "x"}, digest="sha256:" + "0" * 64)
        for tokens in (True, False):
            said = self.ll_loop("download", "state", "--to", "here", code=4, tokens=tokens)
            self.assertIn("has the digest sha256:", said)
        self.assertFalse((self.directory / "here").exists())

    def test_what_is_no_honest_zip_file_is_not_unpacked(self):
        evil = self.directory / "evil.zip"
        with zipfile.ZipFile(evil, "w") as archive:
            archive.writestr("fine", "x")
            archive.writestr("../outside", "x")
        self.github.store("evil", evil.read_bytes())
        self.github.store("text", b"no zip file")
        self.assertIn("leads elsewhere", self.ll_loop("download", "evil", "--to", "here", code=4))
        self.assertIn("it is not a zip file", self.ll_loop("download", "text", "--to", "here", code=4))
        self.assertFalse((self.directory / "here").exists() or (self.directory / "outside").exists())

    def test_no_file_is_written_over(self):
        self.github.store("state", {"x": "new", "y": "y"})
        self.file("here/x", "mine")
        self.assertIn("already exists", self.ll_loop("download", "state", "--to", "here", code=4))
        self.assertEqual(self.tree("here"), {"x": b"mine"})


@unittest.skipUnless(sys.platform == "linux", "elsewhere, the system's certificates are no file that a test can make")
class Tls(Job):
    """The server has a certificate of an authority that the system knows, as a company has one."""

    def setUp(self):
        super().setUp()
        self.certificate, key = self.directory / "certificate.pem", self.directory / "key.pem"
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        command += ["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"]
        command += ["-keyout", key, "-out", self.certificate]
        subprocess.run(command, check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self.github = GitHub(tls=context)
        self.addCleanup(self.github.close)

    def test_the_certificates_of_the_system_count(self):
        self.file("report/x", "x")
        known = {"SSL_CERT_FILE": str(self.certificate)}
        self.ll_loop("upload", "ours", "report", env=known)
        self.ll_loop("download", "ours", "--to", "here", env=known)
        self.ll_loop("download", "ours", "--to", "here", env=known, tokens=False)
        self.assertEqual(self.tree("here"), {"x": b"x"})
        said = self.ll_loop("upload", "more", "report", code=69)
        self.assertIn("certificate", said)


class Memory(Job):
    """A large artifact is never in memory as a whole."""

    # A small process in between: a child counts the memory of the process that it was forked from.
    MEASURE = "import resource,subprocess,sys;c=subprocess.call(sys.argv[1:]);\
print('peak',resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss);sys.exit(c)"

    def peak(self, *arguments, tokens=True):
        said = self.ll_loop(*arguments, tokens=tokens, wrapper=[sys.executable, "-S", "-E", "-c", self.MEASURE])
        unit = 1 if sys.platform == "darwin" else 1024
        return int(re.search(r"^peak (\d+)$", said, re.MULTILINE)[1]) * unit

    def peaks(self, name, size):
        """The memory that an artifact of so many bytes takes each way."""
        path = self.file(f"{name}.bin")
        noise = random.Random(7)
        with path.open("wb") as file:
            for begin in range(0, size, 1_000_000):
                file.write(noise.randbytes(min(1_000_000, size - begin)))
        service, rest = f"{name}-service", f"{name}-rest"
        peaks = {"upload": self.peak("upload", name, path.name)}
        peaks["download"] = self.peak("download", name, "--to", service)
        peaks["download, REST"] = self.peak("download", name, "--to", rest, tokens=False)
        for to in (service, rest):
            self.assertEqual(sha256(self.directory / to / path.name), sha256(path))
        return peaks

    def test_200_megabytes_take_no_more_than_20_of_memory_beside_the_program(self):
        # Of which more is in memory the less it is optimised.
        small, large = self.peaks("small", 1), self.peaks("large", 200_000_000)
        more = {name: peak - small[name] for name, peak in large.items()}
        print("memory, MB:", {name: round(bytes / 1e6, 1) for name, bytes in more.items()}, flush=True)
        for name, taken in more.items():
            self.assertLessEqual(taken, MEMORY, name)


if __name__ == "__main__":
    unittest.main()
