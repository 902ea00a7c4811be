// The extension of VS Code: it starts `ll-loop lsp`, and hands documents to it. All that is known of loops is in the program.
"use strict";

const path = require("node:path");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

/** Returns what starts the server, and the documents that it is for. */
function settings() {
  const program = vscode.workspace.getConfiguration("ll-loop").get("path") || "ll-loop";
  return {
    server: { command: program, args: ["lsp", "--stdio"] },
    client: {
      // What is no loop is left alone by the server.
      documentSelector: [{ scheme: "file", language: "yaml" }],
      // What runs a loop is a command of ours, and off in a workspace that is not trusted.
      initializationOptions: { runs: vscode.workspace.isTrusted },
      synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/.loops/**") },
    },
  };
}

async function start() {
  const { server, client: options } = settings();
  client = new LanguageClient("ll-loop", "ll-loop", server, options);
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const install = "How to install it";
    const chosen = await vscode.window.showErrorMessage(`ll-loop: cannot start \`${server.command} lsp\`: ${error.message ?? error}`, install);
    if (chosen === install) {
      await vscode.env.openExternal(vscode.Uri.parse("https://github.com/little-loops/ll-loop/blob/main/docs/install.md"));
    }
  }
}

/** Runs a command of the program on the loop that is open, where the workspace is trusted: a loop runs what it likes. */
function inTerminal(command) {
  return async () => {
    const document = vscode.window.activeTextEditor?.document;
    if (!document || document.uri.scheme !== "file" || !vscode.workspace.isTrusted) return;
    await document.save();
    const { server } = settings();
    const file = document.uri.fsPath;
    const directory = path.dirname(file);
    const loops = directory.split(path.sep).indexOf(".loops");
    const cwd = loops > 0 ? directory.split(path.sep).slice(0, loops).join(path.sep) : directory;
    // The program itself is the shell: nothing is quoted, and nothing of the file's name is read as a command.
    vscode.window.createTerminal({ name: `ll-loop ${command}`, cwd, shellPath: server.command, shellArgs: [command, file] }).show();
  };
}

async function restart() {
  await client?.stop();
  await start();
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("ll-loop.restart", restart),
    // The server is told at its start whether loops may be run from here.
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    vscode.commands.registerCommand("ll-loop.run", inTerminal("run")),
    vscode.commands.registerCommand("ll-loop.test", inTerminal("test")),
  );
  await start();
}

async function deactivate() {
  await client?.stop();
}

module.exports = { activate, deactivate };
