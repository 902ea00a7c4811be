"""A Docker engine with BuildKit, and a base image, on whatever machine this is.

An engine that answers is used as it is. Where none does, one is started for these tests alone, with its own
socket and data, without a bridge or firewall rules (so containers have the network `none` or `host`), and is
ended by its pid. Where no registry answers, the base image is made from Debian's archive.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ll-loop-tests"
LABEL = "io.little-loops.test=1"
# What the Dockerfile installs: already in the base that is made here, so that the build needs little network.
PACKAGES = ["bash", "ca-certificates", "coreutils", "curl", "git", "jq"]


class NoEngine(Exception):
    """No engine can be had here, and why."""


class Engine:
    def __init__(self):
        self.process = None
        self.directory = Path(tempfile.mkdtemp(prefix="ll-loop-docker-", dir="/var/tmp"))
        # Said outright, as tests set HOME to what the runner sets it to.
        config = os.environ.get("DOCKER_CONFIG") or str(Path.home() / ".docker")
        self.env = {**os.environ, "DOCKER_BUILDKIT": "1", "DOCKER_CONFIG": config}
        try:
            self.socket = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
            if not self.find_client():
                self.start()
                if not self.find_client():
                    raise NoEngine("the engine that was started cannot build with BuildKit")
            # An engine of our own has neither bridge nor NAT: what a build downloads goes through the host's network.
            self.build_network = "host"
        except BaseException:
            self.close()
            raise

    def find_client(self):
        """The first client that can build with BuildKit on the engine; there may be more than one."""
        clients = [shutil.which("docker", path=part) for part in [*os.environ["PATH"].split(":"), "/usr/bin"]]
        for client in dict.fromkeys(filter(None, clients)):
            self.client = client
            if self("info", check=False).returncode == 0 and self.can_build():
                return True
        return False

    def can_build(self):
        context = self.directory / "probe"
        context.mkdir(exist_ok=True)
        # A stage that cannot be built and is not needed: BuildKit alone skips it.
        (context / "Dockerfile").write_text(
            "FROM scratch AS unneeded\nCOPY nothing /\nFROM scratch\nCOPY Dockerfile /\n"
        )
        return self("build", "--quiet", "--label", LABEL, str(context), check=False).returncode == 0

    def start(self):
        if os.getuid() != 0:
            raise NoEngine("no Docker engine answers, and starting one needs root")
        daemon = shutil.which("dockerd", path=os.environ["PATH"] + ":/usr/sbin")
        if daemon is None:
            raise NoEngine("no Docker engine answers, and there is no dockerd to start one (Debian: docker.io)")
        self.socket = str(self.directory / "docker.sock")
        self.log = self.directory / "dockerd.log"
        command = [
            daemon, "--host", f"unix://{self.socket}", "--data-root", self.directory / "data",
            "--exec-root", self.directory / "exec", "--pidfile", self.directory / "dockerd.pid",
            "--iptables=false", "--bridge=none",
        ]  # fmt: skip
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self.env["DOCKER_HOST"] = f"unix://{self.socket}"
        until = time.monotonic() + 60
        while not Path(self.socket).exists() or self.ping() != 0:
            if self.process.poll() is not None or time.monotonic() > until:
                tail = "".join(self.log.read_text().splitlines(keepends=True)[-15:])
                raise NoEngine(f"dockerd did not start:\n{tail}")
            time.sleep(0.2)
        # The tests also call docker as another user, as the runner does. The directory is ours alone to write to.
        os.chmod(self.directory, 0o755)
        os.chmod(self.socket, 0o666)

    def ping(self):
        client = shutil.which("docker") or "/usr/bin/docker"
        return subprocess.run([client, "version"], env=self.env, capture_output=True).returncode

    def close(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            # What a container with the network of the host leaves mounted would keep the directory from going away.
            subprocess.run(["umount", self.directory / "exec/netns/default"], capture_output=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def __call__(self, *arguments, check=True, timeout=600, **options):
        done = subprocess.run(
            [self.client, *map(str, arguments)],
            env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", timeout=timeout, **options,
        )  # fmt: skip
        if check and done.returncode != 0:
            raise AssertionError(f"docker {arguments[0]} ended with {done.returncode}:\n{done.stdout}")
        return done

    def popen(self, *arguments, **options):
        return subprocess.Popen(
            [self.client, *map(str, arguments)],
            env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", **options,
        )  # fmt: skip

    def inspect(self, image):
        return json.loads(self("image", "inspect", image).stdout)[0]

    def has(self, image):
        return self("image", "inspect", image, check=False).returncode == 0

    def build(self, context, tag, *options, dockerfile=None):
        arguments = ["build", "--network", self.build_network, "--label", LABEL, "--tag", tag, *options]
        if dockerfile is not None:
            path = self.directory / "Dockerfile"
            path.write_text(dockerfile)
            arguments += ["--file", path]
        self(*arguments, context)
        return tag

    def base_image(self):
        """The base that the Dockerfile pins, or one made from the same Debian release."""
        pinned = re.search(r"^ARG BASE_IMAGE=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE).group(1)
        if self.has(pinned) or (self.process is None and self("pull", "--quiet", pinned, check=False).returncode == 0):
            return pinned
        suite = re.search(r"debian:([a-z]+)", pinned).group(1)
        tag = f"ll-loop-test/debian:{suite}"
        if not self.has(tag):
            self("import", rootfs(suite), tag)
        return tag


def rootfs(suite):
    """A tar of the Debian release, made once and kept in the cache."""
    kept = CACHE / f"debian-{suite}.tar"
    if kept.exists():
        return kept
    if os.getuid() != 0:
        raise NoEngine("no registry answers, and debootstrap, which makes a base image without one, needs root")
    if shutil.which("debootstrap") is None:
        raise NoEngine("no registry answers, and debootstrap, which makes a base image without one, is not installed")
    CACHE.mkdir(parents=True, exist_ok=True)
    print(f"making a base image of Debian {suite}, once", flush=True)
    with tempfile.TemporaryDirectory(prefix="ll-loop-rootfs-", dir="/var/tmp") as directory:
        made = subprocess.run(
            ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", suite, directory],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        if made.returncode != 0:
            raise NoEngine("debootstrap failed:\n" + "\n".join(made.stdout.splitlines()[-15:]))
        for path in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale"):
            shutil.rmtree(f"{directory}/{path}", ignore_errors=True)
        os.makedirs(f"{directory}/var/cache/apt/archives/partial")
        os.makedirs(f"{directory}/var/lib/apt/lists/partial")
        subprocess.run(["tar", "--numeric-owner", "-C", directory, "-cf", f"{kept}.new", "."], check=True)
        os.rename(f"{kept}.new", kept)
    return kept
