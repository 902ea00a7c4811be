#!/usr/bin/env python3
"""Reads a JUnit file as two consumers do and prints what they found as JSON: read_junit.py FILE

Fails (exit 1, with the reason on stderr) when either cannot read it. Needs junitparser and junit2html.
"""

import json
import sys
import tempfile
from pathlib import Path

from junit2htmlreport import runner
from junit2htmlreport.parser import Junit
from junitparser import Error, Failure, JUnitXml, Skipped, TestSuite


def repeats(case, kind):
    """Counts what junitparser keeps but has no name for in its plain flavour."""
    return sum(child.tag in (f"{kind}Failure", f"{kind}Error") for child in case._elem)


def with_junitparser(path):
    xml = JUnitXml.fromfile(path)
    suites = [xml] if isinstance(xml, TestSuite) else list(xml)
    cases = [case for suite in suites for case in suite]
    kinds = [type(result) for case in cases for result in case.result]
    return {
        "suites": [suite.name for suite in suites],
        "tests": len(cases),
        "failures": kinds.count(Failure),
        "errors": kinds.count(Error),
        "skipped": kinds.count(Skipped),
        "flaky": sum(repeats(case, "flaky") for case in cases),
        "reruns": sum(repeats(case, "rerun") for case in cases),
        "names": [case.name for case in cases],
        "counted": {"tests": xml.tests, "failures": xml.failures, "errors": xml.errors, "skipped": xml.skipped},
    }


def with_junit2html(path):
    cases = [case for suite in Junit(path).suites for case in suite.all()]
    with tempfile.TemporaryDirectory() as directory:
        page = Path(directory, "report.html")
        runner.run([path, str(page)])
        size = page.stat().st_size
    return {
        "tests": len(cases),
        "failures": sum(case.outcome() == "failed" for case in cases),
        "skipped": sum(case.outcome() == "skipped" for case in cases),
        "passed": sum(case.outcome() == "passed" for case in cases),
        "names": [case.name for case in cases],
        "page_bytes": size,
    }


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    path = sys.argv[1]
    print(json.dumps({"junitparser": with_junitparser(path), "junit2html": with_junit2html(path)}, indent=2))


if __name__ == "__main__":
    main()
