"""Runs in the metrics and traces of others, read by their own libraries."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from runner import ROOT

PROGRAM = Path(os.environ.get("LL_LOOP_BIN", ROOT / "target/release/ll-loop"))

# A state and a verdict with what a label has to escape.
LOOP = r"""
name: tidy
description: d
initial: check
states:
  check:
    action: test -f fixed
    on_yes: done
    on_no: fix
  fix:
    action: touch fixed; printf 'ALL "G\\OOD"'
    evaluate: {type: output_contains, pattern: GOOD}
    on_yes: check
    on_no: check
  done: {terminal: true}
"""


class Telemetry(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        self.place = Path(self.directory)
        (self.place / ".loops").mkdir()
        (self.place / ".loops/tidy.yaml").write_text(LOOP)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": self.directory,
            "NO_COLOR": "1",
        }

    def run_program(self, *arguments, code=0, **environment):
        done = subprocess.run(
            [PROGRAM, *arguments],
            cwd=self.place,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_the_parser_of_prometheus_reads_what_a_run_left(self):
        self.run_program("run", "tidy", "--report-dir", "reports")
        text = (self.place / "reports/metrics.prom").read_text()
        families = {family.name: family for family in text_string_to_metric_families(text)}
        verdicts = {
            (sample.labels["state"], sample.labels["verdict"]): sample.value
            for sample in families["ll_loop_run_verdicts"].samples
        }
        self.assertEqual(verdicts, {("check", "no"): 1, ("check", "yes"): 1, ("fix", "yes"): 1})
        (duration,) = families["ll_loop_run_duration_seconds"].samples
        self.assertEqual(duration.labels, {"loop": "tidy", "outcome": "success", "verified": "true"})
        self.assertGreater(duration.value, 0)
        self.assertTrue(all(family.type == "gauge" and family.documentation for family in families.values()))


if __name__ == "__main__":
    unittest.main()
