"""`gh release` of a rehearsal, as far as release.sh calls it: releases are kept in a file (rehearsal.py).

Two things are as surprising as the real one: a draft is not found by its tag until it is published, so that a second
`create` makes a second draft; and publishing without a tag would make one.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from writes import Writes

STORE = Path(os.environ["FAKE_RELEASES"])
OPTIONS = {"--title", "--notes-file", "--limit", "--json"}


def main(words):
    assert not [word for word in words if word.startswith("--target")], "GitHub would refuse it"
    assert os.environ["GH_TOKEN"] and os.environ["GH_REPO"] == "little-loops/ll-loop"
    assert words.pop(0) == "release", words
    command = words.pop(0)
    options, arguments = {}, []
    while words:
        word = words.pop(0)
        name, _, value = word.partition("=")
        if name in OPTIONS:
            options[name] = value or words.pop(0)
        elif word.startswith("--"):
            options[name] = value or "true"
        else:
            arguments.append(word)
    if command in ("list", "view"):
        return read(command, arguments, json.loads(STORE.read_text()))
    with Writes() as write:
        code = 1
        if write.happens:
            releases = json.loads(STORE.read_text())
            code = {"create": create, "upload": upload, "edit": edit}[command](releases, arguments, options)
            # Whole, for who reads at the same time.
            new = STORE.with_suffix(".new")
            new.write_text(json.dumps(releases, indent=1))
            new.rename(STORE)
        return write.code(code)


def read(command, arguments, releases):
    if command == "list":
        print(json.dumps([{"tagName": tag, "isDraft": r["draft"]} for tag, all_of in releases.items() for r in all_of]))
        return 0
    (tag,) = arguments
    print(json.dumps({"assets": [{"name": name, "size": size} for name, size in releases[tag][0]["assets"].items()]}))
    return 0


def create(releases, arguments, options):
    (tag,) = arguments
    notes = Path(options["--notes-file"]).read_text()
    release = {"draft": "--draft" in options, "prerelease": "--prerelease" in options, "notes": notes, "assets": {}}
    releases.setdefault(tag, []).append(release)
    return 0


def upload(releases, arguments, options):
    tag, *files = arguments
    (release,) = releases[tag]
    assert "--clobber" in options
    assert release["draft"], "an immutable release takes no more assets"
    for file in files:
        release["assets"][Path(file).name] = Path(file).stat().st_size
    return 0


def edit(releases, arguments, options):
    (tag,) = arguments
    (release,) = releases[tag]
    assert options["--draft"] == "false" and "--verify-tag" in options
    remote = [os.environ["REAL_GIT"], "ls-remote", os.environ["FAKE_REMOTE"], f"refs/tags/{tag}"]
    if not subprocess.check_output(remote):
        print("the tag does not exist", file=sys.stderr)
        return 1
    release["draft"] = False
    if options["--latest"] == "true":
        for other in releases.values():
            other[0].pop("latest", None)
        release["latest"] = True
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
