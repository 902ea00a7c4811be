"""What the pretended runners and linters of further languages share, with their ways to leave something out as data."""

import re

from pretend import broken, cases, files, finish, functions, read


def run(sources, tests, case, skipped, whole, comment="//", left_out=()):
    """Runs the tests below some files: `skipped` finds cases, and `whole` files, that are left out."""
    known = functions([path for path in files(*sources) if path not in tests], comment)
    wrong = []
    for path in tests:
        text = read(path)
        if re.search(whole, text, re.M) or path in left_out:
            continue
        for found in cases(text, case):
            if not re.search(skipped, found.head + "\n" + found.body):
                wrong += ["%s: %s" % (found.name, why) for why in broken(found.body, known, comment)]
    finish(wrong)


def lint(patterns, bad, of_line, of_file, left_out=()):
    """Finds bad words in files, unless something says to leave the line, the file or the rule out."""
    wrong = []
    for path in files(*patterns):
        text = read(path)
        if path in left_out or re.search(of_file, text):
            continue
        lines = text.split("\n")
        for number, line in enumerate(lines):
            around = "\n".join(lines[max(0, number - 1) : number + 1])
            if re.search(bad, line) and not re.search(of_line, around):
                wrong.append("%s:%s: %s" % (path, number + 1, line.strip()))
    finish(wrong)
