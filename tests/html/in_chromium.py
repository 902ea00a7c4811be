"""What the tests of pages share: a project in which the program writes them, and a real Chromium that opens them."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent
PROGRAM = os.environ["LL_LOOP_BIN"]

READERS = [
    {"name": "light"},
    {"name": "dark", "dark": True},
    {"name": "phone", "width": 360},
    {"name": "without scripts", "scripts": False},
    {"name": "printed", "print": True},
]


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = Path(tempfile.mkdtemp(prefix="ll-html-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        (cls.directory / ".loops").mkdir()

    @classmethod
    def ll_loop(cls, *arguments, code=0):
        environment = {"PATH": os.environ["PATH"], "HOME": str(cls.directory)}
        command = [PROGRAM, *arguments]
        done = subprocess.run(command, cwd=cls.directory, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    @classmethod
    def git(cls, *arguments):
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *who, *arguments], cwd=cls.directory, check=True)

    def file(self, name, text):
        file = self.directory / name
        file.write_text(text)
        return file

    def node(self, script, *arguments):
        """Runs a script that opens pages; returns what it saw."""
        environment = {**os.environ, "LL_CHROMIUM": shutil.which("chromium")}
        command = ["node", HERE / script, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def screenshots(self, name):
        """Returns a directory for screenshots, which are kept where LL_SCREENSHOTS says."""
        directory = Path(os.environ.get("LL_SCREENSHOTS", self.directory / "seen")) / name
        directory.mkdir(parents=True, exist_ok=True)
        return directory

    def readers_of(self, file, name):
        """Opens a file as every reader; returns what each saw."""
        seen = self.node("browser.mjs", file, json.dumps(READERS), self.screenshots(name))
        self.assertEqual(len(seen), len(READERS))
        return seen

    def assert_readable(self, reader):
        self.assertEqual(reader["told"], [], "violations and errors")
        self.assertEqual(reader["requests"], [])
        self.assertFalse(reader["overflows"], "wider than its reader's window")
        self.assertEqual(reader.get("violations", []), [], "axe-core")
        self.assertFalse([name for name in reader["attributes"] if name.startswith("on")])
