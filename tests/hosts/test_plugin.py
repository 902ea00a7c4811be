"""The plugin for Claude Code, with the real CLI: it is installed from the marketplace of this repository, and its commands reach
the model as texts."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from vendors import Say, Vendors

ROOT = Path(__file__).resolve().parents[2]
MACHINE = "arm64" if os.uname().machine == "aarch64" else "x64"
CLAUDE = Path(os.environ["LL_HOST_CLIS"]) / f"node_modules/@anthropic-ai/claude-code-linux-{MACHINE}/claude"
LONGEST = 180
COMMANDS = ("create-loop", "loop-suggester")


class Plugin(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = Path(home.name)
        self.vendors = Vendors([Say("Done.")])
        self.addCleanup(self.vendors.close)

    def claude(self, *arguments, cwd=None):
        environment = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "ANTHROPIC_BASE_URL": self.vendors.url,
            "ANTHROPIC_API_KEY": "a-key-of-the-tests",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        return subprocess.run(
            [str(CLAUDE), *arguments],
            cwd=cwd or self.home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST,
        )

    def test_it_is_a_valid_plugin_of_a_valid_marketplace(self):
        for path in (ROOT / "plugin", ROOT):
            ran = self.claude("plugin", "validate", str(path))
            self.assertEqual(ran.returncode, 0, ran.stdout)
        listed = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text())["plugins"]
        self.assertEqual([(plugin["name"], plugin["source"]) for plugin in listed], [("ll", "./plugin")])

    def test_it_can_be_installed_and_its_commands_reach_the_model(self):
        for arguments in (("marketplace", "add", str(ROOT)), ("install", "ll@ll-loop")):
            ran = self.claude("plugin", *arguments)
            self.assertEqual(ran.returncode, 0, ran.stdout)
        for command in COMMANDS:
            before = len(self.vendors.calls)
            ran = self.claude("-p", f"/ll:{command} the documents", "--output-format", "json")
            self.assertEqual(ran.returncode, 0, ran.stdout)
            said = " ".join(call.text for call in self.vendors.calls[before:])
            for word in ("ll-loop list", "ll-loop catalog", "the documents"):
                self.assertIn(word, said)

    def test_its_commands_name_only_commands_that_exist(self):
        program = os.environ["LL_LOOP_BIN"]
        help_text = subprocess.run([program, "help"], capture_output=True, text=True).stdout
        known = {line.split()[0] for line in help_text.splitlines() if line.startswith("  ") and line.strip()}
        for command in COMMANDS:
            text = (ROOT / f"plugin/commands/{command}.md").read_text()
            named = {part.split()[0].partition("`")[0] for part in text.split("`ll-loop ")[1:]}
            self.assertLessEqual(named, known, command)


if __name__ == "__main__":
    unittest.main()
