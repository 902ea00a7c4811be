"""What `ll-loop fmt` writes, in the tools that others format and check YAML with: Prettier and yamllint."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from runner import ROOT

# yaml-language-server formats with Prettier, and brings it.
TOOLS = os.environ.get("LL_EDITOR_TOOLS")
PROGRAM = os.environ.get("LL_LOOP_BIN")
SHOWN = re.compile(r"```yaml loop[^\n]*\n(.*?)```", re.DOTALL)


def texts():
    """Every loop, library and test of this repository, by the name that it gets in a project."""
    for directory in ("catalog", "tests/fixtures/loops"):
        for path in sorted((ROOT / directory).glob("*.yaml")):
            yield f".loops/{Path(directory).name}/{path.name}", path.read_text()
    for number, path in enumerate(sorted(ROOT.glob("**/*.test.yaml"))):
        if "target" not in path.parts:
            yield f".loops/tests/{number}-{path.name}", path.read_text()
    number = 0
    for path in sorted((ROOT / "docs").glob("**/*.md")):
        for block in SHOWN.findall(path.read_text()):
            number += 1
            yield f".loops/docs/{number}.yaml", block


def documented_rules():
    """The rules of yamllint that the page names, as a configuration."""
    page = " ".join((ROOT / "docs/editors.md").read_text().split())
    rules = re.findall(r"`((?:braces|comments|indentation|line-length): (?:\{[^`]*\}|\w+))`", page)
    assert len(rules) == 4, rules
    # Whether a document begins with `---`, and whether a truth is written `yes`, is the author's.
    return "{extends: default, rules: {document-start: disable, truthy: disable, " + ", ".join(rules) + "}}"


@unittest.skipUnless(TOOLS and PROGRAM, "LL_EDITOR_TOOLS or LL_LOOP_BIN is not set: run `tests/run packaging`")
class Format(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.project = Path(directory.name)
        for name, text in texts():
            path = self.project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        ran = self.run_in("fmt")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def run_in(self, *arguments, program=PROGRAM):
        return subprocess.run([program, *arguments], cwd=self.project, capture_output=True, text=True)

    def test_prettier_finds_nothing_to_change(self):
        files = [str(path.relative_to(self.project)) for path in sorted(self.project.glob(".loops/**/*.yaml"))]
        self.assertGreater(len(files), 200)
        # What is ignored by git in a directory above would be left out.
        arguments = [f"{TOOLS}/node_modules/prettier/bin/prettier.cjs", "--print-width", "100", "--ignore-path", "none", "--list-different", *files]
        ran = self.run_in(*arguments, program="node")
        self.assertEqual((ran.stdout, ran.stderr), ("", ""))

    def test_yamllint_finds_no_error_with_the_rules_of_the_page(self):
        ran = self.run_in("-f", "parsable", "-d", documented_rules(), ".loops", program="yamllint")
        # Its reader is of YAML 1.1, and knows no `?` in a word within brackets.
        found = [line for line in ran.stdout.splitlines() if not line.endswith("(syntax)")]
        self.assertEqual((found, ran.stderr), ([], ""))


if __name__ == "__main__":
    unittest.main()
