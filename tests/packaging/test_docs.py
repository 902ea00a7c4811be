"""What a command can count or list, and the documents say."""

import re
import subprocess
import unittest

import yaml

from runner import ROOT

# Where the inputs and outputs of each action stand in the README.
SECTIONS = {
    "action.yml": "## The action",
    "deliver/action.yml": "### `deliver`",
    "plan/action.yml": "### `plan`",
    "merge/action.yml": "### `merge`",
}


def names_of_rows(text):
    """The names in the first column of tables, by the title of the column."""
    found, title = {}, None
    for line in text.splitlines():
        if not line.startswith("|"):
            title = None
            continue
        first = line.strip("|").split("|")[0].strip()
        if title is None:
            title = first
        found.setdefault(title, []).extend(re.findall(r"`([a-z-]+)`", first))
    return found


def crates():
    """The crates below each crate of the program, itself included, as `cargo tree` knows them on Linux."""
    tree = subprocess.run(
        ["cargo", "tree", "--locked", "-e", "normal", "--prefix", "depth", "--target", "x86_64-unknown-linux-gnu"],
        cwd=ROOT, text=True, capture_output=True, check=True,
    ).stdout  # fmt: skip
    below, path = {}, []
    for line in filter(None, tree.splitlines()):
        depth, crate = re.match(r"(\d+)(\S+ v[^ ]+)", line).groups()
        path = [*path[: int(depth)], crate]
        below.setdefault(crate, set())
        if len(path) > 1:
            below[path[-2]].add(crate)

    def closure(crate, seen):
        if crate not in seen:
            seen.add(crate)
            for other in below[crate]:
                closure(other, seen)
        return seen

    return {crate: closure(crate, set()) for crate in below}, path[0]


class Documents(unittest.TestCase):
    def test_the_readme_has_every_input_and_output_of_each_action(self):
        readme = (ROOT / "README.md").read_text()
        for action, heading in SECTIONS.items():
            section = re.split(r"\n#{2,3} ", readme.split(f"\n{heading}\n", 1)[1])[0]
            rows, definition = names_of_rows(section), yaml.safe_load((ROOT / action).read_text())
            for title in ("input", "output"):
                self.assertEqual(sorted(rows.get(title, [])), sorted(definition[f"{title}s"]), f"{action}: {title}s")

    def test_the_action_in_a_container_has_no_input_or_output_of_its_own(self):
        whole, container = (yaml.safe_load((ROOT / name).read_text()) for name in ("action.yml", "docker/action.yml"))
        # An action that is a container has no steps around it that could carry a cache.
        without = {"version", "image", "network", "env", "reuse"}
        for part, missing in (("inputs", without), ("outputs", {"continued", "html-url"})):
            self.assertEqual(set(whole[part]) - set(container[part]), missing)
            self.assertEqual(set(container[part]) - set(whole[part]), set())

    def test_the_crates_are_counted(self):
        text = (ROOT / "docs/dependencies.md").read_text()
        below, program = crates()
        total = re.search(r"built from (\d+) other crates", text)
        self.assertEqual(int(total[1]), len(below[program]) - 1)
        rows = re.findall(r"^\| (.+?) \| (\d+) \|", text.split("## In the program")[1].split("\n## ")[0], re.MULTILINE)
        wanted, said, named = {}, {}, set()
        for row, count in rows:
            own = [crate for name in re.findall(r"\[`([\w-]+)`\]", row) for crate in below if crate.split(" ")[0] == name]
            own = [crate for crate in own if crate in direct(below, program)]
            named.update(crate.split(" ")[0] for crate in own)
            wanted[row] = len(set().union(*(below[crate] for crate in own)))
            said[row] = int(count)
        self.assertEqual(said, wanted)
        self.assertEqual(named, {crate.split(" ")[0] for crate in direct(below, program)})


def direct(below, program):
    sections = (ROOT / "Cargo.toml").read_text().split("\n[")
    of_linux = """target.'cfg(target_os = "linux")'.dependencies]"""
    own = "\n".join(section for section in sections if section.startswith(("dependencies]", of_linux)))
    names = set(re.findall(r"^([\w-]+) = ", own, re.MULTILINE))
    others = [crate for crate in below[program] if crate.split(" ")[0] in names]
    # Of two versions of one crate, the newer one is ours.
    newest = {}
    for crate in others:
        name, version = crate.split(" v")
        number = [int(part) for part in re.findall(r"\d+", version)[:3]]
        if number >= newest.get(name, ([], ""))[0]:
            newest[name] = (number, crate)
    return {crate for _, crate in newest.values()}


if __name__ == "__main__":
    unittest.main()
