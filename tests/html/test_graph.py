"""Pictures of loops in a real Chromium: what is hostile stays text, and every reader can read them."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
PROGRAM = os.environ["LL_LOOP_BIN"]

HOSTILE = "</text></svg><script>alert(1)</script><img src=x onerror=alert(2)>&lt;\u202e\u200b\"'"
LOOP = f"""
name: tidy
description: {json.dumps(HOSTILE)}
initial: check
max_iterations: 4
states:
  check:
    action: {json.dumps("exit 1 # " + HOSTILE)}
    on_yes: done
    on_no: mend
    on_error: failed
  mend: {{action: {json.dumps("true # 你好 " + HOSTILE)}, next: check}}
  "a<b>&'": {{action: 'true', next: "a<b>&'"}}
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
# All that a picture consists of.
OURS = {"svg", "style", "g", "a", "rect", "circle", "path", "polygon", "text", "title"}
PAGE = {"html", "head", "meta", "body", "main", "h1", "div"}


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = Path(tempfile.mkdtemp(prefix="ll-html-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        (cls.directory / ".loops").mkdir()
        (cls.directory / ".loops/tidy.yaml").write_text(LOOP)
        cls.ll_loop("run", "tidy", code=3)
        cls.drawn = {
            "loop": cls.ll_loop("show", "tidy", "--format", "svg"),
            "run": cls.ll_loop("show", "tidy", "--run", "tidy", "--format", "svg"),
        }

    @classmethod
    def ll_loop(cls, *arguments, code=0):
        environment = {"PATH": os.environ["PATH"], "HOME": str(cls.directory)}
        command = [PROGRAM, *arguments]
        done = subprocess.run(command, cwd=cls.directory, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def read(self, name, text):
        """Opens a file as every reader; returns what each saw. The screenshots are kept where LL_SCREENSHOTS says."""
        file = self.directory / name
        file.write_text(text)
        screenshots = Path(os.environ.get("LL_SCREENSHOTS", self.directory / "seen")) / name
        screenshots.mkdir(parents=True, exist_ok=True)
        command = ["node", HERE / "browser.mjs", file, json.dumps(READERS), screenshots]
        environment = {**os.environ, "LL_CHROMIUM": shutil.which("chromium")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check(self, seen, elements):
        self.assertEqual(len(seen), len(READERS))
        for reader in seen:
            with self.subTest(reader["name"]):
                self.assertEqual(set(reader["elements"]) - elements, set(), "foreign elements")
                self.assertEqual(reader["told"], [], "violations and errors")
                self.assertEqual(reader["requests"], [])
                self.assertFalse(reader["overflows"], "wider than its reader's window")
                self.assertEqual(reader["cut"], [], "texts that leave their boxes")
                self.assertEqual(reader.get("violations", []), [], "axe-core")
                self.assertNotIn("style", reader["attributes"])
                self.assertFalse([name for name in reader["attributes"] if name.startswith("on")])
        self.assertNotEqual(seen[0]["ink"], seen[1]["ink"], "light and dark are the same")

    def test_a_picture_of_its_own(self):
        for name, drawn in self.drawn.items():
            with self.subTest(name):
                self.check(self.read(f"{name}.svg", drawn), OURS)

    def test_a_picture_within_a_page_that_forbids_everything(self):
        for name, drawn in self.drawn.items():
            with self.subTest(name):
                begin, end = drawn.index("<style>"), drawn.index("</style>")
                style = drawn[begin + len("<style>") : end]
                digest = b64encode(sha256(style.encode()).digest()).decode()
                policy = f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-{digest}'"
                page = (
                    f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A loop</title>'
                    f'<meta name="viewport" content="width=device-width">'
                    f'<meta http-equiv="Content-Security-Policy" content="{policy}"></head>'
                    f"<body><main><h1>A loop</h1>{drawn}</main></body></html>"
                )
                self.check(self.read(f"{name}.html", page), OURS | PAGE)


if __name__ == "__main__":
    unittest.main()
