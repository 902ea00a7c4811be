"""The language server in Neovim, set up as the page says it for old ones, which is what Debian has."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from runner import ROOT

PROGRAM = os.environ.get("LL_LOOP_BIN")
NEOVIM = shutil.which("nvim")

LOOP = """\
name: main
description: d
initial: check
states:
  check: {action: make, on_yes: doen, on_no: check}
  done: {terminal: true}
"""
TESTS = "loop: main\ncases:\n  - name: x\n    mocks: {check: {exit: 0}}\n    expect: {path: [check, done]}\n"

# What somebody does in the editor, one thing after the other; each says what came of it.
PLAYED = """
local said = {}
local function wait(done) return vim.wait(60000, done, 20) end
vim.cmd('edit .loops/main.yaml')
wait(function() return #vim.diagnostic.get(0) > 0 end)
said.codes = vim.tbl_map(function(found) return found.code end, vim.diagnostic.get(0))
local function ask(method, line, column, more)
  local params = vim.tbl_extend('force', {
    textDocument = vim.lsp.util.make_text_document_params(), position = { line = line, character = column },
  }, more or {})
  for _, answer in pairs(vim.lsp.buf_request_sync(0, method, params, 60000) or {}) do return answer.result end
end
local all = { start = { line = 0, character = 0 }, ['end'] = { line = 99, character = 0 } }
local fix = ask('textDocument/codeAction', 0, 0, { range = all, context = { diagnostics = {} } })[1]
said.fix = fix.title
vim.lsp.util.apply_workspace_edit(fix.edit, 'utf-16')
wait(function() return #vim.tbl_filter(function(found) return found.severity == 1 end, vim.diagnostic.get(0)) == 0 end)
said.hover = ask('textDocument/hover', 4, 3).contents.value
said.labels = vim.tbl_map(function(item) return item.label end, ask('textDocument/completion', 4, 34))
said.folds = ask('textDocument/foldingRange', 0, 0)
vim.lsp.util.apply_workspace_edit(ask('textDocument/rename', 4, 3, { newName = 'look' }), 'utf-16')
vim.lsp.util.apply_text_edits(ask('textDocument/formatting', 0, 0, { options = { tabSize = 2, insertSpaces = true } }), 0, 'utf-16')
vim.cmd('silent! wall')
local file = io.open(os.getenv('SAID'), 'w')
file:write(vim.fn.json_encode(said))
file:close()
vim.cmd('qall!')
"""


@unittest.skipUnless(PROGRAM and NEOVIM, "LL_LOOP_BIN is not set, or there is no Neovim: run `tests/run packaging`")
class Neovim(unittest.TestCase):
    def test_the_documented_setup_finds_repairs_completes_renames_and_formats(self):
        page = (ROOT / "docs/editors.md").read_text()
        setup = next(block for block in re.findall(r"```lua\n(.*?)```", page, re.DOTALL) if "nvim_create_autocmd" in block)
        with tempfile.TemporaryDirectory() as home:
            project = Path(home) / "project"
            for name, text in {".loops/main.yaml": LOOP, ".loops/tests/main.test.yaml": TESTS}.items():
                path = project / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            (Path(home) / "bin").mkdir()
            (Path(home) / "bin/ll-loop").symlink_to(PROGRAM)
            (Path(home) / "init.lua").write_text(setup)
            (Path(home) / "played.lua").write_text(PLAYED)
            said = Path(home) / "said.json"
            ran = subprocess.run(
                [NEOVIM, "--headless", "-u", f"{home}/init.lua", "-c", f"luafile {home}/played.lua"],
                cwd=project, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
                env={"PATH": f"{home}/bin:{os.environ['PATH']}", "HOME": home, "SAID": str(said)},
            )  # fmt: skip
            self.assertTrue(said.exists(), ran.stdout + ran.stderr)
            said = json.loads(said.read_text())
            self.assertIn("unknown-state", said["codes"])
            self.assertEqual(said["fix"], "Write `done`")
            self.assertTrue(said["hover"].startswith("state **check**"), said["hover"])
            self.assertEqual(said["labels"], ["check", "done", "$current"])
            self.assertEqual(said["folds"], [{"startLine": 3, "endLine": 5}])
            self.assertIn("  look: { action: make, on_yes: done, on_no: look }\n", (project / ".loops/main.yaml").read_text())
            self.assertIn("mocks: {look: {exit: 0}}", (project / ".loops/tests/main.test.yaml").read_text())


if __name__ == "__main__":
    unittest.main()
