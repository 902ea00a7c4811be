"""A board in a real Chromium: what runs claim stays text, every reader can read it, and keys lead through it."""

import json
import subprocess
import unittest

from in_chromium import HERE, PageTest
from test_report import EVERYTHING, PAGE, UNSEEN

LOOP = """
name: tidy
description: d
initial: check
states:
  check: {action: 'test -f fixed', on_yes: done, on_no: fix}
  fix: {action: 'touch fixed', next: check}
  done: {terminal: true}
"""
QUESTION = """
name: ask
description: d
initial: ask
states:
  ask: {action_type: human_approval, action: 'May it go out?', on_yes: done, on_no: bad}
  done: {terminal: true}
  bad: {terminal: true, outcome: failure, description: d}
"""
FAILING = """
name: fails
description: d
initial: check
states:
  check: {action: 'false', on_yes: done, on_no: bad}
  done: {terminal: true}
  bad: {terminal: true, outcome: failure, description: d}
"""


class Boards(PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, text in (("tidy", LOOP), ("fails", FAILING), ("ask", QUESTION)):
            (cls.directory / f".loops/{name}.yaml").write_text(text)
        cls.ll_loop("run", "tidy", "--report-dir", "all/acme-web/1")
        cls.ll_loop("run", "fails", "--report-dir", "all/acme-api/1", code=1)
        for arguments in (["init", "-q"], ["add", ".loops/ask.yaml"], ["commit", "-q", "-m", "first"]):
            cls.git(*arguments)
        asked = ["--ci=plain", "--no-strict", "--on-change", "report"]
        cls.ll_loop("run", "ask", *asked, "--report-dir", "all/acme-shop/1", code=75)
        for found in cls.directory.glob("all/*/1/*.llz"):
            found.unlink()
        cls.forge(cls.directory / "all/acme-web/1/events.jsonl")
        cls.page = cls.ll_loop("board", "all")

    @classmethod
    def forge(cls, journal):
        """Puts a run beside the others every text of which is hostile that a board shows, and one with a damaged line."""
        lines = [json.loads(line) for line in journal.read_text().splitlines()]
        for line in lines:
            if line["event"] == "loop_start":
                line["run_id"] += EVERYTHING
                line["trace"] = {"trace": "1" * 32, "page": "javascript:alert(1)", "repository": "https://x/" + EVERYTHING + "n" * 5000}
            if line["event"] == "action_complete":
                line["usage"] = {"calls": 1, "input_tokens": 1, "output_tokens": 1, "cost_usd": 1e308, "model": EVERYTHING}
        evil = cls.directory / "all/evil/1"
        evil.mkdir(parents=True)
        (evil / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        damaged = cls.directory / "all/damaged/1"
        damaged.mkdir(parents=True)
        (damaged / "events.jsonl").write_text('{"half": \n' + journal.read_text())

    def visit(self, **visit):
        seen = self.node("board.mjs", self.file("board.html", self.page), json.dumps(visit))
        self.assertEqual(seen["told"], [], "violations and errors")
        return seen

    def test_every_reader_can_read_it(self):
        for reader in self.readers_of(self.file("board.html", self.page), "board"):
            with self.subTest(reader=reader["name"]):
                self.assertEqual(set(reader["elements"]) - PAGE, {"button"} & set(reader["elements"]), "foreign elements")
                self.assert_readable(reader)
                self.assertNotIn("style", reader["attributes"])

    def test_what_runs_claim_stays_text(self):
        self.assertEqual([hex(code) for code in UNSEEN if chr(code) in self.page], [])
        self.assertNotIn('href="javascript', self.page)
        self.assertIn("$1.8e308", self.page, "a price that nobody paid is a price")
        self.assertNotIn("n" * 300, self.page, "names are cut")
        self.assertIn("May it go out?", self.page)

    def test_programs_read_it_by_its_schema(self):
        board = self.directory / "board.json"
        board.write_text(self.ll_loop("board", "all", "--json"))
        schema = HERE.parent.parent / "schema/board.schema.json"
        checked = subprocess.run(["check-jsonschema", "--schemafile", schema, board], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_rows_are_filtered_and_sorted_and_keys_lead_through_them(self):
        everything = self.visit()["rows"]
        self.assertEqual(len(everything), 4)
        seen = self.visit(filter="acme fails")
        self.assertEqual((seen["rows"], seen["said"]), (["acme-api"], "1 of 4"))
        self.assertEqual(self.visit(filter="acme fails", keys=["Escape"])["rows"], everything)
        once = self.visit(sort="Repository", keys=["Enter"])
        self.assertEqual((once["rows"], once["sorted"]), (sorted(everything), [["Repository", "ascending"]]))
        twice = self.visit(sort="Cost", keys=["Enter", "Enter"])
        self.assertNotIn("acme", twice["rows"][0])
        self.assertEqual(self.visit(keys=["j", "j", "k"])["here"], everything[0])
        self.assertEqual(self.visit(keys=["j", "j"])["here"], everything[1])


if __name__ == "__main__":
    unittest.main()
