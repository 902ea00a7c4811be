"""The page on which a loop can be walked, in a real Chromium: every reader can use it, and what is hostile stays text."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent
PROGRAM = os.environ["LL_LOOP_BIN"]

HOSTILE = "</script></pre><script>alert(1)</script><img src=x onerror=alert(2)>\u202e"
LOOP = f"""
name: tidy
description: {json.dumps(HOSTILE)}
initial: check
max_iterations: 4
on_max_iterations: tell
states:
  check:
    action: {json.dumps("make check # " + HOSTILE)}
    on_yes: done
    on_no: mend
  mend: {{action: make fix, next: check}}
  tell: {{action: 'true', next: failed}}
  done: {{terminal: true}}
  failed: {{terminal: true, failure: true}}
"""
READERS = [
    {"name": "light"},
    {"name": "dark", "dark": True},
    {"name": "phone", "width": 360},
    {"name": "without scripts", "scripts": False},
    {"name": "printed", "print": True},
]


class Playground(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = Path(tempfile.mkdtemp(prefix="ll-html-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        (cls.directory / ".loops").mkdir()
        (cls.directory / ".loops/tidy.yaml").write_text(LOOP)
        environment = {"PATH": os.environ["PATH"], "HOME": str(cls.directory)}
        command = [PROGRAM, "show", "--html", "tidy"]
        done = subprocess.run(command, cwd=cls.directory, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        cls.page = cls.directory / "tidy.html"
        cls.page.write_text(done.stdout)

    def node(self, script, *arguments):
        environment = {**os.environ, "LL_CHROMIUM": shutil.which("chromium")}
        command = ["node", HERE / script, self.page, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_every_reader_can_read_it(self):
        screenshots = Path(os.environ.get("LL_SCREENSHOTS", self.directory / "seen")) / "playground"
        screenshots.mkdir(parents=True, exist_ok=True)
        for reader in self.node("browser.mjs", json.dumps(READERS), screenshots):
            with self.subTest(reader["name"]):
                self.assertEqual(reader["told"], [], "violations and errors")
                self.assertEqual(reader["requests"], [])
                self.assertFalse(reader["overflows"], "wider than its reader's window")
                self.assertEqual(reader.get("violations", []), [], "axe-core")
                self.assertNotIn("img", reader["elements"])
                self.assertFalse([name for name in reader["attributes"] if name.startswith("on")])

    def test_a_loop_is_walked_with_keys_and_with_the_mouse(self):
        visits = [
            {},
            {"keys": ["2", "1"]},
            {"keys": ["2"], "click": "goes on, and `max_iterations` is met", "width": 360},
            {"keys": ["1"]},
            {"keys": ["2", "Backspace"]},
            {"keys": ["2", "1", "2", "0"]},
            {"click": "error"},
        ]
        start, mended, capped, done, back, again, dead = self.node("playground.mjs", json.dumps(visits))
        for seen in (start, mended, capped, done, back, again, dead):
            self.assertEqual(seen["told"], [])
            self.assertFalse(seen["overflows"])
        self.assertEqual(start["state"], "check")
        self.assertEqual(start["ways"][:2], ["yes → done", "no → mend"])
        self.assertEqual(start["current"], ["check"])
        self.assertEqual(mended["trail"], ["check (no)", "mend (goes on)", "check"])
        self.assertIn("2 visits of this state", mended["facts"])
        self.assertEqual(capped["state"], "tell")
        self.assertIn("a cap was met", capped["facts"])
        self.assertIn("the work is verified", done["facts"])
        self.assertTrue(done["state"].startswith("done: "))
        self.assertEqual(done["ways"], [])
        for seen in (back, again):
            self.assertEqual((seen["state"], seen["trail"]), ("check", ["check"]))
        self.assertEqual(dead["state"], "The run ends: no way for `error`")


if __name__ == "__main__":
    unittest.main()
