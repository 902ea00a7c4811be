"""The schema in the language server that editors read YAML with, found by the modeline and by the entry of SchemaStore."""

import http.server
import json
import os
import queue
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

from runner import ROOT

TOOLS = os.environ.get("LL_EDITOR_TOOLS")
SCHEMA = ROOT / "schema/loop.schema.json"
ENTRY = json.loads((ROOT / "schema/schemastore.json").read_text())
GOOD = """\
name: tidy
initial: check
states:
  check: {action: "true", on_yes: done}
  done: {terminal: true}
"""
BAD = GOOD.replace("action:", "actoin:") + "max_iteration: 3\n"


class Server:
    """A language server that is talked to over standard input and output."""

    def __init__(self, settings):
        self.settings, self.number = settings, 0
        # Without a home of this machine's user, it reads nothing of theirs.
        self.home = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            ["node", f"{TOOLS}/node_modules/yaml-language-server/bin/yaml-language-server", "--stdio"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], "HOME": self.home.name},
        )  # fmt: skip
        self.answers, self.diagnostics = {}, queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {"workspace": {"configuration": True}}})
        self.tell("initialized", {})
        self.tell("workspace/didChangeConfiguration", {"settings": {"yaml": settings}})

    def write(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def tell(self, method, params):
        self.write({"method": method, "params": params})

    def ask(self, method, params):
        self.number += 1
        waiting = self.answers[self.number] = queue.Queue()
        self.write({"id": self.number, "method": method, "params": params})
        return waiting.get(timeout=60)

    def read(self):
        stream = self.process.stdout
        while header := stream.readline():
            length = int(header.split(b":")[1]) if header.startswith(b"Content-Length") else 0
            while stream.readline() != b"\r\n":
                pass
            self.take(json.loads(stream.read(length)))

    def take(self, message):
        if message.get("method") == "workspace/configuration":
            known = {"yaml": self.settings}
            self.write({"id": message["id"], "result": [known.get(item.get("section")) for item in message["params"]["items"]]})
        elif message.get("method") == "textDocument/publishDiagnostics":
            self.diagnostics.put(message["params"])
        elif "method" in message and "id" in message:
            self.write({"id": message["id"], "result": None})
        elif "id" in message:
            self.answers[message["id"]].put(message.get("result"))

    def findings(self, path, text):
        """Opens a file, and returns what the server says of it."""
        uri = Path(path).as_uri()
        self.tell("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "yaml", "version": 1, "text": text}})
        while True:
            said = self.diagnostics.get(timeout=60)
            if said["uri"] == uri:
                return [each["message"] for each in said["diagnostics"]]

    def words(self, path, line, character):
        where = {"textDocument": {"uri": Path(path).as_uri()}, "position": {"line": line, "character": character}}
        answer = self.ask("textDocument/completion", where) or {}
        return {item["label"] for item in answer.get("items", [])}

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.home.cleanup()


@unittest.skipUnless(TOOLS, "LL_EDITOR_TOOLS is not set: run `tests/run packaging`")
class Editor(unittest.TestCase):
    def server(self, **settings):
        server = Server({"validate": True, "completion": True, "hover": True, "schemaStore": {"enable": False}, **settings})
        self.addCleanup(server.close)
        return server

    def test_the_modeline_names_the_schema(self):
        server = self.server()
        modeline = f"# yaml-language-server: $schema={SCHEMA.as_uri()}\n"
        self.assertEqual(server.findings("/p/a.yaml", modeline + GOOD), [])
        found = " ".join(server.findings("/p/b.yaml", modeline + BAD))
        self.assertIn("max_iteration", found)
        self.assertIn("actoin", found)
        self.assertEqual(server.findings("/p/c.yaml", BAD), [], "without a schema there is nothing to say")
        server.findings("/p/d.yaml", modeline + GOOD + "max\n")
        self.assertIn("max_iterations", server.words("/p/d.yaml", 6, 3))

    def test_the_loops_of_this_repository_have_no_findings(self):
        server = self.server(schemas={SCHEMA.as_uri(): ["*.yaml"]})
        for path in sorted((ROOT / ".loops").glob("*.yaml")):
            self.assertEqual(server.findings(path, path.read_text()), [], path.name)

    def test_the_entry_of_schemastore_finds_loops_and_nothing_else(self):
        catalog = {"version": 1, "schemas": [{**ENTRY, "url": SCHEMA.as_uri()}]}
        body = json.dumps(catalog).encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        store = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(store.server_close)
        threading.Thread(target=store.serve_forever, daemon=True).start()
        self.addCleanup(store.shutdown)
        server = self.server(schemaStore={"enable": True, "url": f"http://127.0.0.1:{store.server_port}/catalog.json"})
        for path in (".loops/a.yaml", ".loops/a.yml", "web/.loops/a.yaml", ".loops/web/a b.yaml"):
            self.assertTrue(self.until_read(server, f"/p/{path}"), path)
        for path in (".loops/lib/a.yaml", ".loops/vendor/o/r/a.yaml", ".loops/tests/a.test.yaml", "loops/a.yaml", ".github/workflows/a.yml"):
            self.assertEqual(server.findings(f"/p/{path}", BAD), [], path)

    def until_read(self, server, path):
        """The catalogue is read while the first file is looked at."""
        for number in range(20):
            if found := server.findings(path, BAD + "#\n" * number):
                return found
            threading.Event().wait(0.25)
        return []

    def test_the_entry_names_what_a_release_has(self):
        self.assertEqual(set(ENTRY), {"name", "description", "fileMatch", "url"})
        self.assertTrue(ENTRY["url"].endswith("/v1/schema/loop.schema.json"))
        self.assertTrue(SCHEMA.is_file())


if __name__ == "__main__":
    unittest.main()
