"""The page on which a loop can be walked, in a real Chromium: every reader can use it, and what is hostile stays text."""

import json
import unittest

from in_chromium import PageTest

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

class Playground(PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.directory / ".loops/tidy.yaml").write_text(LOOP)
        cls.page = cls.directory / "tidy.html"
        cls.page.write_text(cls.ll_loop("show", "--html", "tidy"))

    def test_every_reader_can_read_it(self):
        for reader in self.readers_of(self.page, "playground"):
            with self.subTest(reader["name"]):
                self.assert_readable(reader)
                self.assertNotIn("img", reader["elements"])

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
        start, mended, capped, done, back, again, dead = self.node("playground.mjs", self.page, json.dumps(visits))
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
