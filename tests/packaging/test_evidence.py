"""The statements about a run, read by the library of those who have described them."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from google.protobuf import json_format
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement

PROGRAM = os.environ["LL_LOOP_BIN"]
CHECK = """\
name: tidy
description: Finds out whether a file is there
initial: check
states:
  check: {action: test -f good, check: true, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
"""


def read(text):
    """Parses a statement, where no field may be unknown, and looks whether it is as it has to be."""
    statement = Statement.copy_from_pb(json_format.Parse(text, statement_pb2.Statement()))
    statement.validate()
    return statement.pb


class Statements(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        self.write(".loops/tidy.yaml", CHECK)
        self.write("good", "")
        self.write(".gitignore", "report/\n")
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "first")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def git(self, *arguments):
        return subprocess.check_output(["git", *arguments], cwd=self.root, text=True).strip()

    def run_loop(self):
        subprocess.run([PROGRAM, "run", "tidy", "--report-dir", "report"], cwd=self.root, capture_output=True)
        return {path.name: path.read_text() for path in (self.root / "report").glob("*.intoto.json")}

    def test_both_are_statements_about_the_commit_the_tree_and_the_bundle(self):
        found = self.run_loop()
        self.assertEqual(set(found), {"verdict.intoto.json", "verdict-details.intoto.json"})
        (bundle,) = (self.root / "report").glob("*.llz")
        digest = subprocess.check_output(["sha256sum", bundle], text=True).split()[0]
        digests = [
            {"gitCommit": self.git("rev-parse", "HEAD")},
            {"gitTree": self.git("rev-parse", "HEAD^{tree}")},
            {"sha256": digest},
        ]
        for name, text in found.items():
            statement = read(text)
            self.assertEqual([dict(subject.digest) for subject in statement.subject], digests, name)
            # What it says in their words is what it says in ours.
            again = json.loads(json_format.MessageToJson(statement))
            self.assertEqual(again, json.loads(text), name)
        verdict = read(found["verdict.intoto.json"])
        self.assertEqual(verdict.predicate_type, "https://in-toto.io/attestation/svr/v0.2")
        properties = list(verdict.predicate["properties"])
        self.assertEqual(properties, ["LL_LOOP_VERIFIED", "LL_LOOP_JUDGES_UNCHANGED"])

    def test_a_run_that_did_not_succeed_has_a_statement_of_details(self):
        (self.root / "good").unlink()
        found = self.run_loop()
        self.assertEqual(set(found), {"verdict-details.intoto.json"})
        statement = read(found["verdict-details.intoto.json"])
        self.assertEqual(list(statement.predicate["properties"]), [])

    def test_the_library_refuses_what_is_no_statement(self):
        """Or the tests above could not fail."""
        text = self.run_loop()["verdict.intoto.json"]
        for altered in (
            text.replace("https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1"),
            text.replace('"predicateType"', '"predicate_kind"'),
            text.replace('"subject"', '"subjects"'),
        ):
            self.assertNotEqual(altered, text)
            with self.assertRaises(Exception):
                read(altered)


if __name__ == "__main__":
    unittest.main()
