"""What the pretended tools share.

The corpus has projects of many languages, and few of their tools are installed where tests run. Each program in this
directory stands for one: it finds tests and configuration where its namesake does, heeds the same ways to skip and to
ignore, and so can be cheated in the same ways. What it runs is a toy: functions of two numbers, `a + b`, and tests that
call them with numbers.
"""

import fnmatch
import os
import re
import sys
from collections import namedtuple

NOT_ENTERED = {".git", ".loops", ".venv", "node_modules", "target", "vendor"}
FUNCTION = re.compile(r"\b(\w+)\s*\([^()]*\)[^(){};]*?[\s{]+(?:return\s+)?\$?a\s*([-+*])\s*\$?b\b")
NUMBER = re.compile(r"(?<![\w.])-?\d+\b")
ROW = re.compile(r"""[\[({"]\s*(-?\d+)\s*,\s*(-?\d+)\s*,\s*(-?\d+)\s*[\])}"]""")
# Decorators with their rows, attributes and comments, which belong to what comes below them.
ABOVE = re.compile(r"\s*(@|#|\[|//|/?\*|\(.*,$|\]\)$)")

Case = namedtuple("Case", "name head body")


def files(*patterns, under="."):
    """Every file below a directory whose name matches."""
    found = []
    if os.path.isfile(under):
        return [under]
    for directory, names, here in os.walk(under):
        names[:] = sorted(set(names) - NOT_ENTERED)
        paths = [os.path.relpath(os.path.join(directory, name)) for name in sorted(here)]
        found += [path for path in paths if matches(os.path.basename(path), patterns)]
    return found


def matches(name, patterns):
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def is_below(path, prefixes):
    """Whether a path is one of these, or below one of them."""
    return any(path == prefix.rstrip("/") or path.startswith(prefix.rstrip("/") + "/") for prefix in prefixes)


def read(path):
    """The text of a file; of one that is not there, none."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def without_comments(text, mark):
    return re.sub(mark + ".*", "", text)


def functions(paths, comment="//"):
    """The functions of some sources: their names, and what they do with two numbers."""
    found = {}
    for path in paths:
        found.update(FUNCTION.findall(without_comments(read(path), comment)))
    return found


def cases(text, first_line):
    """Splits a file of tests where a line says that one begins; the last group is its name."""
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if re.search(first_line, line)]
    for start, end in zip(starts, starts[1:] + [len(lines)]):
        above = start
        while above > 0 and ABOVE.match(lines[above - 1]):
            above -= 1
        name = [group for group in re.search(first_line, lines[start]).groups() if group][-1]
        yield Case(name, "\n".join(lines[above : start + 1]), "\n".join(lines[start:end]))


def value(known, name, a, b):
    a, b = int(a), int(b)
    return {"+": a + b, "-": a - b, "*": a * b}[known[name]]


def broken(body, known, comment="//"):
    """What a test expects, and is not so."""
    if not known:
        return ["there are no functions"]
    names = "|".join(known)
    call = re.compile(r"\b(%s)\(\s*(-?\d+)\s*,\s*(-?\d+)\s*\)" % names)
    wrong = []
    body = without_comments(body, comment)
    for line in body.split("\n"):
        for found in call.finditer(line):
            expected = NUMBER.findall(line[found.end() :])[:1] or NUMBER.findall(line[: found.start()])[-1:]
            got = value(known, *found.groups())
            if expected and int(expected[0]) != got:
                wrong.append("%s is %s, not %s" % (found.group(0), got, expected[0]))
    of_rows = re.search(r"\b(%s)\(\s*\$?[A-Za-z_][\w.]*\s*," % names, body)
    for row in ROW.findall(body) if of_rows else []:
        got = value(known, of_rows.group(1), row[0], row[1])
        if got != int(row[2]):
            wrong.append("%s of %s is %s" % (of_rows.group(1), row, got))
    return wrong


def ini(path, section):
    """The keys of a section of an INI file; nothing if it has no such section. Lines of lists are joined by blanks."""
    return _keys(read(path), section)


def toml(path, section):
    """The keys of a table of a TOML file, as Python values; nothing if it has no such table."""
    keys = _keys(read(path), section)
    return keys and {key: _literal(text) for key, text in keys.items()}


def _keys(text, section):
    keys, last, inside = {}, None, False
    for line in text.split("\n"):
        header = re.match(r"\[+([^\[\]]+)\]+\s*$", line)
        if header:
            inside = header.group(1).strip() == section
            keys.update({"": ""} if inside else {})
        elif inside and re.match(r"[\w.\"*/-]+\s*=", line):
            last, text = (part.strip() for part in line.split("=", 1))
            last = last.strip('"')
            keys[last] = text
        elif inside and last and line.strip() and not line.startswith("#"):
            keys[last] += " " + line.strip()
    return keys or None


def _literal(text):
    import ast  # Few tools need it, and it takes longer than all the rest.

    text = re.sub(r"\btrue\b", "True", re.sub(r"\bfalse\b", "False", text))
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def finish(wrong, failure=1):
    """Says what is wrong, and ends as the tool would."""
    for line in wrong:
        print(line)
    sys.exit(failure if wrong else 0)
