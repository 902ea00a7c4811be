"""The extension of VS Code: packaged by its script, and its own client against the language server, over its own transport."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]

# What the extension asks of VS Code, played: its client is the real one, with the settings that it is given.
PLAYED = """
const Module = require("node:module");
const path = require("node:path");
const extension = path.join(process.argv[2], "extension");
const given = {};
const vscode = {
  workspace: {
    getConfiguration: () => ({ get: () => process.env.LL_LOOP_BIN }),
    createFileSystemWatcher: (glob) => ({ glob }),
    isTrusted: false,
    onDidGrantWorkspaceTrust: () => ({ dispose() {} }),
  },
  commands: { registerCommand: (name, act) => { (given.commands ??= {})[name] = act; return { dispose() {} }; } },
  window: {}, env: {}, Uri: {},
};
class LanguageClient {
  constructor(id, name, server, options) { Object.assign(given, { id, server, options }); }
  async start() { given.started = true; }
  async stop() { given.stopped = true; }
}
const load = Module._load;
Module._load = (request, ...rest) =>
  request === "vscode" ? vscode : request === "vscode-languageclient/node" ? { LanguageClient } : load(request, ...rest);
const { activate, deactivate } = require(path.join(extension, "extension.js"));
const rpc = load(path.join(extension, "node_modules/vscode-jsonrpc/node.js"), module, false);
const { spawn } = require("node:child_process");

(async () => {
  await activate({ subscriptions: [] });
  // Of what is not trusted nothing is run.
  await given.commands["ll-loop.run"]();
  const { command, args } = given.server;
  const child = spawn(command, args, { cwd: process.cwd(), stdio: ["pipe", "pipe", "inherit"] });
  const wire = rpc.createMessageConnection(new rpc.StreamMessageReader(child.stdout), new rpc.StreamMessageWriter(child.stdin));
  const published = new Promise((resolve) => wire.onNotification("textDocument/publishDiagnostics", resolve));
  wire.listen();
  const folder = { uri: "file://" + process.cwd(), name: "x" };
  const answer = await wire.sendRequest("initialize", { processId: process.pid, rootUri: folder.uri, capabilities: {}, workspaceFolders: [folder] });
  await wire.sendNotification("initialized", {});
  const { diagnostics } = await published;
  await wire.sendRequest("shutdown");
  await wire.sendNotification("exit");
  const code = await new Promise((resolve) => child.on("exit", resolve));
  await deactivate();
  console.log(JSON.stringify({
    ...given, commands: Object.keys(given.commands), code, codes: diagnostics.map((found) => found.code), server: answer.serverInfo.name, args,
  }));
})();
"""


class Extension(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = Path(tempfile.mkdtemp(prefix="ll-vscode-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        command = [ROOT / "editors/vscode/package", cls.directory]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        (cls.package,) = cls.directory.glob("*.vsix")
        cls.unpacked = cls.directory / "unpacked"
        zipfile.ZipFile(cls.package).extractall(cls.unpacked)

    def test_the_package_has_what_is_needed_and_nothing_of_the_machine(self):
        manifest = json.loads((self.unpacked / "extension/package.json").read_text())
        for file in (manifest["main"], "readme.md", "LICENSE.txt", "node_modules/vscode-languageclient/package.json"):
            self.assertTrue((self.unpacked / "extension" / file).is_file(), file)
        cargo = (ROOT / "Cargo.toml").read_text()
        self.assertIn(f'\nversion = "{manifest["version"]}"\n', cargo)
        self.assertEqual(manifest["contributes"]["configuration"]["properties"]["ll-loop.path"]["scope"], "machine")

    def test_it_starts_the_server_and_the_server_answers(self):
        project = self.directory / "project"
        (project / ".loops").mkdir(parents=True)
        (project / ".loops/x.yaml").write_text("name: x\ninitial: gone\nstates:\n  a: {terminal: true}\n")
        environment = {**os.environ, "LL_LOOP_BIN": os.environ["LL_LOOP_BIN"]}
        command = ["node", "-e", PLAYED, "x", self.unpacked]
        done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = json.loads(done.stdout)
        self.assertEqual(seen["args"], ["lsp", "--stdio"])
        self.assertEqual(sorted(seen["commands"]), ["ll-loop.restart", "ll-loop.run", "ll-loop.test"])
        self.assertTrue(seen["started"] and seen["stopped"])
        self.assertIn("unknown-state", seen["codes"])
        self.assertEqual((seen["server"], seen["code"]), ("ll-loop", 0))


if __name__ == "__main__":
    unittest.main()
