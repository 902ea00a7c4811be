"""Runs in the metrics and traces of others, read by their own libraries."""

import os
import subprocess
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

import otlp_messages
from runner import ROOT

PROGRAM = Path(os.environ.get("LL_LOOP_BIN", ROOT / "target/release/ll-loop"))

# A state with what a label has to escape.
LOOP = r"""
name: tidy
description: d
initial: check
states:
  check:
    action: test -f fixed
    on_yes: done
    on_no: 'fix "all"'
  'fix "all"':
    action: touch fixed; echo GOOD
    evaluate: {type: output_contains, pattern: GOOD}
    on_yes: check
    on_no: check
  done: {terminal: true}
"""

FIX = r'fix "all"'

# A loop that hands itself off twice.
IN_THREE_PARTS = """
name: tidy
description: d
initial: look
states:
  look:
    action: 'echo one; test -e twice || { test -e once && touch twice; touch once; echo "CONTEXT_HANDOFF: later"; }'
    on_yes: done
    on_no: bad
  done: {terminal: true}
  bad: {terminal: true, outcome: failure, description: d}
"""


class Collector:
    """A collector on loopback, which keeps what it is sent."""

    def __init__(self):
        self.sent = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.sent.append((self.path, self.headers["Content-Type"], body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def read(self, kind):
        """What came for one signal, as the official messages have it."""
        return [otlp_messages.read(kind, body) for path, _, body in self.sent if path == f"/v1/{kind}"]

    def spans(self):
        return [span for request in self.read("traces") for span in otlp_messages.spans(request)]


class Telemetry(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        self.place = Path(self.directory)
        (self.place / ".loops").mkdir()
        (self.place / ".loops/tidy.yaml").write_text(LOOP)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": self.directory,
            "NO_COLOR": "1",
        }

    def run_program(self, *arguments, code=0, **environment):
        done = subprocess.run(
            [PROGRAM, *arguments],
            cwd=self.place,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_the_parser_of_prometheus_reads_what_a_run_left(self):
        self.run_program("run", "tidy", "--report-dir", "reports")
        text = (self.place / "reports/metrics.prom").read_text()
        families = {family.name: family for family in text_string_to_metric_families(text)}
        verdicts = {
            (sample.labels["state"], sample.labels["verdict"]): sample.value
            for sample in families["ll_loop_run_verdicts"].samples
        }
        self.assertEqual(verdicts, {("check", "no"): 1, ("check", "yes"): 1, (FIX, "yes"): 1})
        (duration,) = families["ll_loop_run_duration_seconds"].samples
        self.assertEqual(duration.labels, {"loop": "tidy", "outcome": "success", "verified": "true"})
        self.assertGreater(duration.value, 0)
        self.assertTrue(all(family.type == "gauge" and family.documentation for family in families.values()))

    def test_a_collector_reads_the_same_in_both_encodings(self):
        self.run_program("run", "tidy")
        read = {}
        for protocol, media in [("http/json", "application/json"), ("http/protobuf", "application/x-protobuf")]:
            with Collector() as collector:
                self.run_program(
                    "export", "otlp", "tidy", "--to", collector.address, OTEL_EXPORTER_OTLP_PROTOCOL=protocol
                )
                self.assertEqual([(path, kind) for path, kind, _ in collector.sent], [("/v1/traces", media), ("/v1/metrics", media)])
                read[protocol] = (collector.read("traces"), collector.read("metrics"))
        self.assertEqual(read["http/json"], read["http/protobuf"])
        ((traces,), (metrics,)) = read["http/protobuf"]
        resource = traces.resource_spans[0]
        self.assertTrue(resource.schema_url.startswith("https://opentelemetry.io/schemas/1."))
        self.assertEqual(otlp_messages.attributes(resource.resource.attributes)["service.name"], "ll-loop")
        root, *steps = otlp_messages.spans(traces)
        self.assertEqual([step["name"] for step in steps], ["check", FIX, "check"])
        self.assertEqual({step["parent"] for step in steps}, {root["id"]})
        self.assertTrue(all(root["start"] <= step["start"] <= step["end"] <= root["end"] for step in steps))
        self.assertEqual(root["attributes"]["cicd.pipeline.result"], "success")
        named = {metric["name"]: metric for metric in otlp_messages.metrics(metrics)}
        self.assertEqual((named["ll.run.duration"]["kind"], named["ll.run.duration"]["unit"]), ("histogram", "s"))
        self.assertEqual([point["value"] for point in named["ll.run.verdicts"]["points"]], [1, 1, 1])

    def test_each_part_of_a_chain_is_sent_when_it_ends_and_linked_to_the_one_before(self):
        (self.place / ".loops/tidy.yaml").write_text(IN_THREE_PARTS)
        job = {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "o/r", "GITHUB_SERVER_URL": "https://github.example"}
        with Collector() as collector:
            for number, arguments in enumerate([("run", "tidy"), ("resume", "tidy"), ("resume", "tidy")]):
                self.run_program(
                    *arguments,
                    code=0 if number == 2 else 75,
                    OTEL_EXPORTER_OTLP_ENDPOINT=collector.address,
                    GITHUB_RUN_ID=str(70 + number),
                    GITHUB_RUN_ATTEMPT="1",
                    **job,
                )
            spans = collector.spans()
        parts = [span for span in spans if span["kind"] == "SPAN_KIND_SERVER"]
        self.assertEqual([part["attributes"]["ll.part"] for part in parts], [1, 2, 3])
        self.assertEqual(len({part["trace"] for part in parts}), 3, "each CI run is a trace of its own")
        self.assertEqual([len(part["links"]) for part in parts], [0, 1, 1])
        for before, after in zip(parts, parts[1:]):
            (link,) = after["links"]
            self.assertEqual((link["trace"], link["id"]), (before["trace"], before["id"]))
        self.assertEqual(
            [part["attributes"].get("cicd.pipeline.result") for part in parts], [None, None, "success"]
        )
        self.assertEqual(len({span["id"] for span in spans}), len(spans), "no span is sent twice")


if __name__ == "__main__":
    unittest.main()
