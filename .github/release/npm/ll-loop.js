#!/usr/bin/env node
// Calls the program of ll-loop that npm installed for this machine.
"use strict";

const name = `@little-loops/ll-loop-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/ll-loop`);
} catch {
  console.error(`ll-loop: the package ${name} is not installed`);
  console.error(
    process.platform === "win32"
      ? "ll-loop does not run on Windows: use WSL (https://learn.microsoft.com/windows/wsl)"
      : "install without `--omit=optional` and `--no-optional`; packages are there for Linux and macOS, x64 and arm64",
  );
  process.exit(69);
}
const words = process.argv.slice(2);
// From 22.15 on, Node.js can leave its place to the program.
if (process.execve) process.execve(program, [program, ...words], process.env);

const child = require("node:child_process").spawn(program, words, { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
  process.on(signal, () => {
    // A terminal sends these to the program as well, and twice means at once.
    const isKey = signal === "SIGINT" || signal === "SIGQUIT";
    if (!isKey || !process.stdin.isTTY) child.kill(signal);
  });
}
child.on("error", (error) => {
  console.error(`ll-loop: ${program} cannot be run: ${error.message}`);
  process.exitCode = 4;
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exitCode = code;
  }
});
