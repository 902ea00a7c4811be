"""The page of a run in a real Chromium: what is hostile stays text, every reader can read it, and keys lead through it."""

import json
import unittest

from in_chromium import PageTest
from test_graph import HOSTILE, OURS

# Everything that a page consists of.
PAGE = {
    *("html", "head", "meta", "title", "style", "body", "a", "header", "main", "nav", "section", "h1", "h2", "h3"),
    *("p", "ul", "ol", "li", "dl", "dt", "dd", "div", "span", "code", "pre", "small", "strong", "kbd"),
    *("table", "thead", "tbody", "tr", "th", "td", "details", "summary", "label", "input", "output", "noscript", "script"),
}
EVERYTHING = (
    HOSTILE
    + "".join(map(chr, [0xAD, 0x61C, 0x200B, 0x200E, 0x200F, 0x2028, 0x202D, 0x2060, 0x2066, 0x2069, 0xFEFF, 0xE0041, 0x85]))
    + "</script></style></title><!--<base href=//x><form action=//x><svg onload=alert(3)>javascript:alert(4)"
)
UNSEEN = [0xAD, 0x61C, 0x200B, 0x200E, 0x202E, 0x2028, 0x2066, 0xFEFF, 0xE0041, 0x85, 0x1B, 0x7]
# What a state can be called.
MEND = "mend<img src=x onerror=alert(6)>&\"'"
LOOP = f"""
name: tidy
description: x
initial: check
max_iterations: 3
states:
  check:
    action: |
      cat text; cat text >&2
      printf '\\033[31mred \\033[1;38;5;46mgreen\\033[0m\\033]8;;javascript:alert(5)\\007link\\n'; seq 1 60; exit 1
    on_yes: done
    on_no: {json.dumps(MEND)}
    on_error: failed
  {json.dumps(MEND)}: {{action: {json.dumps("echo x >> file # 你好 " + HOSTILE)}, next: inner}}
  inner: {{loop: sub, on_success: check, on_failure: failed}}
  done: {{terminal: true}}
  failed: {{terminal: true, failure: true}}
"""
SUB = """
name: sub
description: x
initial: a
states:
  a: {action: echo inside, next: b}
  b: {action: 'test -e /', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}
"""
# What a team sees most: a check that said no.
PLAIN = """
name: plain
description: x
initial: check
states:
  check: {action: "seq 1 60; echo 'src/app.py:3: error: it is wrong'; exit 1", on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}
"""


class Reports(PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.directory / ".loops/tidy.yaml").write_text(LOOP)
        (cls.directory / ".loops/sub.yaml").write_text(SUB)
        (cls.directory / "text").write_text(EVERYTHING + "\n")
        for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
            cls.git(*arguments)
        cls.ll_loop("run", "tidy", "--snapshots", "--report-dir", "out", code=3)
        cls.page = (cls.directory / "out/report.html").read_text()
        # The same as somebody else's bundle, in whose journal every field is hostile.
        journal = (cls.directory / "out/events.jsonl").read_text()
        cls.strange = cls.forged(journal)
        (cls.directory / ".loops/plain.yaml").write_text(PLAIN)
        cls.ll_loop("run", "plain", "--report-dir", "plain", code=1)

    @classmethod
    def forged(cls, journal):
        """Returns the page of a journal in which every text is hostile that nothing is looked up by."""
        names, texts = {"state", "from", "to", "final_state", "verdict"}, {"action", "message", "error", "stdout", "stderr", "text"}

        def worse(value, key=""):
            if isinstance(value, dict):
                # The lines of states are looked up by their names.
                return {name + MEND if key == "lines" else name: worse(each, name) for name, each in value.items()}
            if isinstance(value, list):
                return [worse(each, key) for each in value]
            if not isinstance(value, str):
                return value
            return value + (MEND if key in names else EVERYTHING if key in texts else "")

        def event(line):
            event = worse(json.loads(line))
            if event["event"] == "loop_start":
                event.update(warnings=[EVERYTHING], commit=EVERYTHING)
                event["source"]["file"] += EVERYTHING
            if event["event"] == "loop_complete":
                event["reason"] = EVERYTHING
            if event["event"] == "evaluate":
                event["details"] = {EVERYTHING: EVERYTHING}
            return event

        lines = [json.dumps(event(line)) for line in journal.split("\n") if line]
        # A lone surrogate is no character.
        lines = [line.replace("\\u202e", "\\ud800", 1) for line in lines]
        found = next((cls.directory / ".loops/.history").rglob("*.events.jsonl"))
        found.write_text("\n".join(lines) + "\n")
        page = cls.ll_loop("report", "tidy", "--format", "html")
        found.write_text(journal)
        return page

    def visit(self, **visit):
        [seen] = self.node("report.mjs", self.file("page.html", self.page), json.dumps([visit]))
        self.assertEqual(seen["told"], [], "violations and errors")
        self.assertEqual(set(seen["elements"]) - PAGE - OURS, set(), "foreign elements")
        return seen

    def test_every_reader_can_read_it(self):
        pages = {"run": self.page, "forged": self.strange, "nothing": self.nothing()}
        for name, text in pages.items():
            for reader in self.readers_of(self.file(f"{name}.html", text), name):
                with self.subTest(name, reader=reader["name"]):
                    self.assertEqual(set(reader["elements"]) - PAGE - OURS, set(), "foreign elements")
                    self.assert_readable(reader)
                    self.assertNotIn("style", reader["attributes"])

    def nothing(self):
        (self.directory / ".loops/broken.yaml").write_text("name: broken\ninitial: nowhere\nstates: {}\n")
        self.ll_loop("run", "broken", "--report-dir", "none", code=2)
        return (self.directory / "none/report.html").read_text()

    def test_what_cannot_be_seen_is_written_out(self):
        for page in (self.page, self.strange):
            self.assertEqual([hex(code) for code in UNSEEN if chr(code) in page], [])
        self.assertIn("⟨U+202E⟩", self.page)
        self.assertIn("⟨U+2066⟩", self.strange)
        self.assertIn("\N{REPLACEMENT CHARACTER}", self.strange)

    def test_it_opens_at_the_outcome(self):
        """Badge, reason and what the deciding step printed are on the first screen, and that step is open further below."""
        seen = self.visit()
        self.assertIsNone(seen["step"])
        self.assertEqual(len(seen["open"]), 1)
        self.assertIn(f'data-opens="{seen["open"][0]}"', self.page)
        plain = self.directory / "plain/report.html"
        pictures = self.screenshots("first")
        for width in (390, 800, 1280):
            for scheme in ("light", "dark"):
                with self.subTest(width=width, scheme=scheme):
                    picture = pictures / f"{width}-{scheme}.png"
                    [seen] = self.node("report.mjs", plain, json.dumps([{"width": width, "scheme": scheme, "picture": str(picture)}]))
                    self.assertEqual(seen["first"], ["badge", "reason", "printed"])
                    self.assertGreater(picture.stat().st_size, 10_000, "one without a text in it takes less")

    def test_keys_lead_through_the_steps(self):
        self.assertEqual(self.visit(hash="#step-1", keys=["j"])["step"], "step-2")
        self.assertEqual(self.visit(hash="#step-2", keys=["j", "j", "k"])["step"], "step-3")
        self.assertEqual(self.visit(hash="#step-1", keys=["f"])["step"], "step-4")
        self.assertEqual(self.visit(hash="#step-1", keys=["k"])["step"], "step-1")

    def test_steps_are_filtered(self):
        everything = self.visit()["shown"]
        seen = self.visit(filter="sub › a")
        self.assertLess(seen["shown"], everything)
        self.assertGreater(seen["shown"], 0)
        self.assertEqual(seen["said"], f"{seen['shown']} of {everything} steps")
        self.assertEqual(self.visit(failed=True)["shown"], self.page.count('class="fail"><tr>'))

    def test_a_line_of_an_output_has_an_address(self):
        seen = self.visit(hash="#step-1-L12")
        self.assertEqual((seen["line"]["id"], seen["step"]), ("step-1-L12", "step-1"))
        self.assertTrue(seen["line"]["visible"])
        self.assertLessEqual({"f1", "f10", "bold"}, set(seen["classes"]))
        self.assertEqual(self.visit(hash="#step-1-L4")["line"]["text"], "2")
        self.assertIn("⟨U+202E⟩", self.visit(hash="#step-1-E1")["line"]["text"])
        self.assertEqual(self.visit(hash="#step-3.1-L1")["line"]["text"], "inside")
        self.assertIsNone(self.visit(hash="#step-1-L9999absent")["line"])


if __name__ == "__main__":
    unittest.main()
