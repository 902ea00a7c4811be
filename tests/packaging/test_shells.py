"""Completions in the shells themselves, and the manual pages in the formatters that people read them with."""

import os
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM = Path(os.environ.get("LL_LOOP_BIN", Path(__file__).resolve().parents[2] / "target/release/ll-loop"))

LOOP = """\
name: x
initial: check
states:
  check: {action: "true", on_yes: done}
  done: {terminal: true}
"""

# Names of files that a shell would run, if what is completed were read as anything but a word.
HOSTILE = ["$(touch pwned)", "`touch pwned`", "x;touch pwned", "x|touch pwned", "x'touch pwned", "a b", "*", "~", "-rf", "x\ttouch"]


class Shells(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = Path(tempfile.mkdtemp())
        (cls.directory / "bin").mkdir()
        (cls.directory / "bin/ll-loop").symlink_to(PROGRAM)
        cls.project = cls.directory / "project"
        for name in ["tidy", "web/test", "zz-hostile", *HOSTILE]:
            path = cls.project / ".loops" / f"{name}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(LOOP)
        (cls.project / "some-file.llz").touch()
        cls.env = {
            "PATH": f"{cls.directory}/bin:{os.environ['PATH']}",
            "HOME": str(cls.directory),
            "TERM": "dumb",
            "LC_ALL": "C.UTF-8",
        }
        cls.call("run", "tidy", "--no-ci")
        cls.run_name = cls.call("history", "--json").split('"instance":"')[1].split('"')[0]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory)

    @classmethod
    def call(cls, *arguments):
        return subprocess.check_output(
            [cls.directory / "bin/ll-loop", *arguments], cwd=cls.project, env=cls.env, text=True, stderr=subprocess.DEVNULL
        )

    def tearDown(self):
        self.assertFalse((self.project / "pwned").exists(), "a name of a file was run")

    def typed(self, argv, setup, *lines):
        """Types lines into a shell on a terminal, and returns all that it showed."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.project)
            os.execvpe(argv[0], argv, {**self.env, "PS1": "> "})
        shown = ""

        def until(pattern):
            nonlocal shown
            end = time.monotonic() + 30
            begin = len(shown)
            while not re.search(pattern, shown[begin:]):
                self.assertLess(time.monotonic(), end, f"no {pattern!r} in {shown!r}")
                if select.select([terminal], [], [], 0.2)[0]:
                    shown += os.read(terminal, 65536).decode(errors="replace")

        try:
            # Worked out by the shell, so that the echo of what is typed is no answer.
            os.write(terminal, f"{setup}; echo rea''dy\n".encode())
            until("ready\r")
            for typed, pattern in lines:
                os.write(terminal, typed.encode())
                until(pattern)
            os.write(terminal, b"\x15exit\n")
        finally:
            os.close(terminal)
            os.waitpid(pid, 0)
        return shown

    def offered_by_bash(self, *words):
        script = """
            source <(ll-loop completions bash)
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            _ll_loop ll-loop "${@: -1}" "${@: -2:1}"
            printf '%s\\n' "${COMPREPLY[@]}"
        """
        return self.shell("bash", "--norc", "-euc", script, "bash", *words)

    def shell(self, *argv):
        done = subprocess.run(argv, cwd=self.project, env=self.env, text=True, capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_bash_offers_commands_options_loops_and_runs(self):
        self.assertEqual(self.offered_by_bash("ll-loop", "val"), ["validate"])
        self.assertEqual(self.offered_by_bash("ll-loop", "run", "ti"), ["tidy"])
        self.assertEqual(self.offered_by_bash("ll-loop", "ti"), ["tidy"])
        self.assertEqual(self.offered_by_bash("ll-loop", "r", "we"), ["web/test"])
        self.assertEqual(self.offered_by_bash("ll-loop", "report", "tidy-"), [self.run_name])
        self.assertEqual(self.offered_by_bash("ll-loop", "tidy", "--dry"), ["--dry-run"])
        self.assertEqual(self.offered_by_bash("ll-loop", "--color", "ne"), ["never"])
        self.assertEqual(self.offered_by_bash("ll-loop", "run", "no such loop"), [""])

    def test_what_a_shell_would_run_is_not_offered(self):
        self.assertEqual(self.offered_by_bash("ll-loop", "run", ""), ["tidy", "web/test", "zz-hostile"])
        for name in HOSTILE:
            if not name.startswith("-"):
                self.assertEqual(self.offered_by_bash("ll-loop", "run", name), [""], name)

    def test_bash_on_a_terminal(self):
        self.typed(
            ["bash", "--norc", "-i"],
            "bind 'set enable-bracketed-paste off'; source <(ll-loop completions bash)",
            ("ll-loop list ; ll-loop explain --he\t >/dev/null; echo o''ne\n", "one\r"),
            ("ll-loop show ti\t\n", r"tidy(.|\n)*check"),
            ("ls some\t\n", "some-file.llz"),
            ("ll-loop report some\t\n", "some-file.llz"),
            ("ll-loop run \t\t", "zz-hostile"),
            ("\x15ll-loop run $\t", r"run \$"),
        )

    @unittest.skipUnless(shutil.which("zsh"), "needs zsh")
    def test_zsh_on_a_terminal(self):
        for setup in (
            "autoload -U compinit; compinit -u -D; source <(ll-loop completions zsh)",
            "mkdir -p f; ll-loop completions zsh >f/_ll-loop; fpath=($PWD/f $fpath); autoload -U compinit; compinit -u -D",
        ):
            self.typed(
                ["zsh", "-f", "-i"],
                setup,
                ("ll-loop show ti\t\n", r"(?s)show tidy.*check"),
                ("ll-loop report tidy-\t", self.run_name),
                ("\x15ll-loop run \t\t", "zz-hostile"),
                ("\x15ll-loop bundle -o some\t", "some-file.llz"),
            )

    @unittest.skipUnless(shutil.which("fish"), "needs fish")
    def test_fish(self):
        def offered(line):
            return self.shell("fish", "-c", "ll-loop completions fish | source; complete -C $argv[1]", line)

        self.assertEqual(offered("ll-loop run ti"), ["tidy\ta loop"])
        self.assertEqual(offered("ll-loop run "), ["tidy\ta loop", "web/test\ta loop", "zz-hostile\ta loop"])
        self.assertEqual(offered("ll-loop report tidy-"), [f"{self.run_name}\ta run"])
        self.assertEqual(offered("ll-loop bundle -o some")[0].split("\t")[0], "some-file.llz")
        self.assertEqual(offered("ll-loop tidy --dry-r"), ["--dry-run\tShow what would be run, without running it"])

    @unittest.skipUnless(shutil.which("pwsh"), "needs PowerShell")
    def test_powershell(self):
        script = "ll-loop completions powershell | Out-String | Invoke-Expression; (TabExpansion2 'll-loop run ti' 14).CompletionMatches.CompletionText"
        self.assertEqual(self.shell("pwsh", "-NoProfile", "-Command", script), ["tidy"])

    def test_powershell_evaluates_nothing_that_is_typed(self):
        script = self.call("completions", "powershell")
        self.assertIn("Register-ArgumentCompleter -Native -CommandName 'll-loop'", script)
        self.assertNotIn("Invoke-Expression", "".join(line for line in script.splitlines() if not line.startswith("#")))
        self.assertEqual([script.count(one) for one in "{("], [script.count(one) for one in "})"])

    def test_the_manual_pages_have_nothing_to_warn_of(self):
        pages = self.directory / "man"
        subprocess.check_call([PROGRAM, "man", pages], env={**self.env, "SOURCE_DATE_EPOCH": "1767225600"}, stderr=subprocess.DEVNULL)
        names = {page.name for page in pages.iterdir()}
        self.assertLessEqual({"ll-loop.1", "ll-loop-run.1", "ll-loop-artifact-upload.1"}, names)
        self.assertEqual([name for name in names if "guard" in name or "complete-line" in name], [])
        formatters = (["man", "--warnings", "-l"], ["groff", "-k", "-man", "-ww", "-z"], ["mandoc", "-Tlint", "-Wwarning"])
        there = [argv for argv in formatters if shutil.which(argv[0])]
        self.assertTrue(there, "none of man, groff and mandoc is installed")
        for argv in there:
            for page in sorted(pages.iterdir()):
                if argv[0] != "mandoc" and shutil.which("groff") is None:
                    continue
                done = subprocess.run([*argv, page], text=True, capture_output=True, env=self.env, timeout=60)
                said = done.stdout if argv[0] == "mandoc" else ""
                self.assertEqual((done.returncode, said + done.stderr), (0, ""), [*argv, page.name])
        text = (pages / "ll-loop.1").read_text()
        self.assertIn('2026-01-01', text)


if __name__ == "__main__":
    unittest.main()
