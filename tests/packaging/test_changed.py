"""`tests/run --touched`: what a change can break."""

import subprocess
import unittest

from runner import ROOT

EVERYTHING = {"format", "clippy", "check", "test", "lint", "packaging", "artifacts", "html", "hosts", "act", "container"}


def touched(*files):
    command = [ROOT / "tests/run", "--touched"]
    said = subprocess.run(command, input="\n".join([*files, ""]), text=True, capture_output=True, check=True).stdout
    return set(said.splitlines())


class Touched(unittest.TestCase):
    def test_the_program_touches_everything(self):
        for file in ["src/lib.rs", "Cargo.lock", "catalog/lib/a.sh", "action.yml", "tests/run", "docs/diagnostics.md", "new"]:
            self.assertEqual(touched(file), EVERYTHING, file)

    def test_a_test_touches_itself(self):
        self.assertEqual(touched("tests/integration/legs/forge.rs"), {"format", "clippy", "test legs::"})
        self.assertEqual(touched("tests/integration/docs.rs"), {"format", "clippy", "test docs::"})
        self.assertEqual(touched("tests/html/test_report.py"), {"lint", "html"})

    def test_what_all_tests_use_touches_all_tests(self):
        self.assertEqual(touched("tests/integration/common.rs"), {"format", "clippy", "test"})

    def test_what_is_fuzzed_has_tests(self):
        self.assertEqual(touched("fuzz/src/lib.rs"), {"format", "clippy", "test", "lint"})

    def test_several_files_touch_what_each_of_them_touches(self):
        both = touched("docs/limits.md", "tests/integration/legs/mod.rs")
        self.assertEqual(both, {"test", "packaging", "format", "clippy", "test legs::"})

    def test_nothing_touches_nothing(self):
        self.assertEqual(touched(), set())

    def test_each_directory_of_tests_is_known(self):
        stages = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
        for stage in stages:
            self.assertIn(stage, touched(f"tests/{stage}/any.py"))
            self.assertLess(len(touched(f"tests/{stage}/any.py")), len(EVERYTHING))


if __name__ == "__main__":
    unittest.main()
