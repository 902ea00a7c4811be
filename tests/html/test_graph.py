"""Pictures of loops in a real Chromium: what is hostile stays text, and every reader can read them."""

import json
import unittest
from base64 import b64encode
from hashlib import sha256

from in_chromium import PageTest

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
# All that a picture consists of.
OURS = {"svg", "style", "g", "a", "rect", "circle", "path", "polygon", "text", "title"}
PAGE = {"html", "head", "meta", "body", "main", "h1", "div"}


class Pictures(PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.directory / ".loops/tidy.yaml").write_text(LOOP)
        cls.ll_loop("run", "tidy", code=3)
        cls.drawn = {
            "loop": cls.ll_loop("show", "tidy", "--format", "svg"),
            "run": cls.ll_loop("show", "tidy", "--run", "tidy", "--format", "svg"),
        }

    def check(self, name, text, elements):
        seen = self.readers_of(self.file(name, text), name)
        for reader in seen:
            with self.subTest(reader["name"]):
                self.assertEqual(set(reader["elements"]) - elements, set(), "foreign elements")
                self.assert_readable(reader)
                self.assertEqual(reader["cut"], [], "texts that leave their boxes")
                self.assertNotIn("style", reader["attributes"])
        self.assertNotEqual(seen[0]["ink"], seen[1]["ink"], "light and dark are the same")

    def test_a_picture_of_its_own(self):
        for name, drawn in self.drawn.items():
            with self.subTest(name):
                self.check(f"{name}.svg", drawn, OURS)

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
                self.check(f"{name}.html", page, OURS | PAGE)


if __name__ == "__main__":
    unittest.main()
