#!/usr/bin/env python3
"""Makes what a release has beside its archives: wheels and npm packages that carry the program, and an archive with
completions and manual pages. The same archives give the same files. Nothing is published.

  packages.py VERSION ARCHIVES OUT

  VERSION    v1.2.3
  ARCHIVES   directory with the ll-loop-VERSION-*.tar.gz of every target
  OUT        directory that is made anew
"""

import base64
import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
REPOSITORY = "https://github.com/little-loops/ll-loop"
SUMMARY = "Runs loops (YAML finite-state machines: check, fix, verify) in CI, truthfully"
LICENCES = ("LICENSE-APACHE", "LICENSE-MIT")
# What pip and npm call each target. The programs of Linux are static, so they run with any C library.
TARGETS = {
    "x86_64-unknown-linux-musl": ("manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64", "linux", "x64"),
    "aarch64-unknown-linux-musl": ("manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64", "linux", "arm64"),
    "x86_64-apple-darwin": ("macosx_10_12_x86_64", "darwin", "x64"),
    "aarch64-apple-darwin": ("macosx_11_0_arm64", "darwin", "arm64"),
}
SHELLS = {"bash": "ll-loop.bash", "zsh": "_ll-loop", "fish": "ll-loop.fish", "powershell": "ll-loop.ps1"}
# No file says when it was made: 1980-01-01, the first day that a zip file knows.
EPOCH = 315532800


def main(version, archives, out):
    if not re.fullmatch(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?", version):
        sys.exit(f"::error title=no release::`{version}` is not a version")
    archives, out = Path(archives), Path(out)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    programs = {target: program(archives / f"ll-loop-{version}-{target}.tar.gz") for target in TARGETS}
    for target, (tags, system, processor) in TARGETS.items():
        wheel(out, python_version(version), tags, programs[target])
        npm_program(out, version[1:], system, processor, programs[target])
    npm_wrapper(out, version[1:])
    shell_files(out, version, programs[own_target()])


def program(archive):
    with tarfile.open(archive) as tar:
        return tar.extractfile("ll-loop").read()


def own_target():
    """The target of this machine, whose program can be called here."""
    processor = {"arm64": "aarch64", "amd64": "x86_64"}.get(platform.machine().lower(), platform.machine())
    system = "apple-darwin" if sys.platform == "darwin" else "unknown-linux-musl"
    return f"{processor}-{system}"


def python_version(version):
    """PEP 440 has another form for pre-releases: 1.2.3rc1."""
    number, _, pre = version[1:].partition("-")
    if not pre:
        return number
    kind, _, count = pre.partition(".")
    names = {"alpha": "a", "beta": "b", "rc": "rc"}
    if kind not in names or not count.isdigit():
        sys.exit(f"::error title=no release::{version} cannot be written as a version of Python; write -rc.1, -beta.1 or -alpha.1")
    return f"{number}{names[kind]}{count}"


def wheel(out, version, tags, data):
    info = f"ll_loop-{version}.dist-info"
    metadata = (
        f"Metadata-Version: 2.4\nName: ll-loop\nVersion: {version}\nSummary: {SUMMARY}\n"
        f"License-Expression: MIT OR Apache-2.0\n{''.join(f'License-File: {name}{chr(10)}' for name in LICENCES)}"
        f"Project-URL: Source, {REPOSITORY}\nRequires-Python: >=3.8\n"
        f"Description-Content-Type: text/markdown\n\n{readme()}"
    )
    lines = "".join(f"Tag: py3-none-{tag}\n" for tag in tags.split("."))
    files = {
        f"ll_loop-{version}.data/scripts/ll-loop": (data, 0o755),
        f"{info}/METADATA": (metadata.encode(), 0o644),
        f"{info}/WHEEL": (f"Wheel-Version: 1.0\nGenerator: ll-loop\nRoot-Is-Purelib: false\n{lines}".encode(), 0o644),
        **{f"{info}/licenses/{name}": ((ROOT / name).read_bytes(), 0o644) for name in LICENCES},
    }
    record = "".join(f"{name},sha256={digest(content)},{len(content)}\n" for name, (content, _) in files.items())
    files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), 0o644)
    with zipfile.ZipFile(out / f"ll_loop-{version}-py3-none-{tags}.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (content, mode) in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def readme():
    return f"# ll-loop\n\n{SUMMARY}.\n\nThis package has the program of the release, and nothing else. Documentation: {REPOSITORY}\n"


def npm_name(system, processor):
    return f"@little-loops/ll-loop-{system}-{processor}"


def npm_manifest(name, version, **more):
    manifest = {
        "name": name, "version": version, "description": SUMMARY, "license": "MIT OR Apache-2.0",
        "repository": {"type": "git", "url": f"git+{REPOSITORY}.git"}, **more,
    }  # fmt: skip
    return json.dumps(manifest, indent=2).encode() + b"\n"


def npm_program(out, version, system, processor, data):
    name = npm_name(system, processor)
    manifest = npm_manifest(name, version, os=[system], cpu=[processor], files=["bin/ll-loop"], preferUnplugged=True)
    npm_package(out, name, version, {"package.json": (manifest, 0o644), "bin/ll-loop": (data, 0o755)})


def npm_wrapper(out, version):
    """The package that people name. It has no script that runs at the installation: npm takes the program that fits."""
    programs = {npm_name(system, processor): version for _, system, processor in TARGETS.values()}
    manifest = npm_manifest(
        "ll-loop", version, bin={"ll-loop": "ll-loop.js"}, files=["ll-loop.js"], engines={"node": ">=18"}, optionalDependencies=programs
    )
    wrapper = (HERE / "npm/ll-loop.js").read_bytes()
    npm_package(out, "ll-loop", version, {"package.json": (manifest, 0o644), "ll-loop.js": (wrapper, 0o755)})


def npm_package(out, name, version, files):
    files = {**files, "README.md": (readme().encode(), 0o644), **{each: ((ROOT / each).read_bytes(), 0o644) for each in LICENCES}}
    tarball(out / f"{name.lstrip('@').replace('/', '-')}-{version}.tgz", {f"package/{path}": file for path, file in files.items()})


def shell_files(out, version, data):
    """Completions and manual pages, as the program itself prints them."""
    with tempfile.TemporaryDirectory() as directory:
        executable = Path(directory) / "ll-loop"
        executable.write_bytes(data)
        executable.chmod(0o755)
        env = {"PATH": os.environ["PATH"], "HOME": directory, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", str(EPOCH))}

        def call(*arguments):
            return subprocess.run([executable, *arguments], cwd=directory, env=env, check=True, stdout=subprocess.PIPE).stdout

        top = f"ll-loop-{version}-shell"
        files = {f"{top}/completions/{file}": (call("completions", shell), 0o644) for shell, file in SHELLS.items()}
        call("man", "man")
        pages = sorted((Path(directory) / "man").iterdir())
        files.update({f"{top}/man/man1/{page.name}": (page.read_bytes(), 0o644) for page in pages})
    tarball(out / f"{top}.tar.gz", files)


def tarball(path, files):
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(content), mode, EPOCH
            tar.addfile(entry, io.BytesIO(content))
    path.write_bytes(gzip.compress(plain.getvalue(), mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
