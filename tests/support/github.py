"""GitHub as a job sees it, on the loopback address: the artifact service and its storage, and the REST API.

It refuses what GitHub would refuse, and says so in `refusals`, so that a test sees a client that gets through by trying
again. `style="act"` is the dialect of act, and but for lists of Gitea: unknown fields are errors, answers are in camel
case, blocks are appended as they come, and who asks for a list when nothing is stored gets no answer.

A part of the API is a class with functions marked by `@route`; `PARTS` lists the parts.
"""

import base64
import dataclasses
import hashlib
import io
import json
import re
import shutil
import tempfile
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

TOKEN = "ghs_test"
REPOSITORY = "o/r"
REPOSITORY_ID = 1
# Signatures have characters that a client breaks which decodes and encodes addresses.
UPLOAD_SIG = "c2VjcmV0%2Bsig%3D"
DOWNLOAD_SIG = "ZG93bmxvYWQ%2bsig%3d%3d"
TWIRP = "/twirp/github.actions.results.api.v1.ArtifactService/"


@dataclasses.dataclass
class Request:
    method: str
    path: str
    raw_query: str
    query: dict
    headers: dict
    body: bytes

    def json(self):
        return json.loads(self.body or b"{}")


@dataclasses.dataclass
class Response:
    status: int
    body: object = b""
    """Bytes, a path of a file, or what is written as JSON."""
    headers: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Fault:
    """What goes wrong with the next requests whose `METHOD path?query` holds `match`."""

    match: str
    times: int = 1
    response: Response | None = None
    """In place of the real answer. Without one, the connection ends."""
    cut: bool = False
    """The real answer ends in the middle of its body."""


@dataclasses.dataclass
class Artifact:
    id: int
    name: str
    backend: str
    """The run as the artifact service counts."""
    job: str
    run_id: int
    data: Path | None = None
    size: int = 0
    digest: str | None = None
    final: bool = False
    expired: bool = False
    created: str = ""
    head_repository_id: int | None = REPOSITORY_ID
    request: dict = dataclasses.field(default_factory=dict)
    blocks: dict = dataclasses.field(default_factory=dict)


def route(method, pattern):
    """Marks a function `(self, request, *groups) -> Response` as the answer to requests."""

    def mark(function):
        function.route = (method, re.compile(pattern))
        return function

    return mark


def twirp_error(status, code, msg):
    return Response(status, {"code": code, "msg": msg})


def message(status, text):
    return Response(status, {"message": text})


class Part:
    """A part of the API. `self.github` is the whole."""

    def __init__(self, github):
        self.github = github

    def routes(self):
        for name in dir(self):
            function = getattr(self, name)
            if hasattr(function, "route"):
                yield (*function.route, function)

    def guarded(self, request, name, permission=None):
        """The refusal of a request to the REST API, if it is refused. `permission` is such as `statuses: write`."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() not in ("bearer", "token") or token != self.github.token:
            return message(401, "Bad credentials")
        if name != REPOSITORY:
            return message(404, "Not Found")
        if permission is not None and not self.github.permits(permission):
            return message(403, "Resource not accessible by integration")
        return None


class ArtifactService(Part):
    """The service of the run that is going on, called with the runner's token."""

    FIELDS = {
        "CreateArtifact": {"name", "version", "expires_at"},
        "FinalizeArtifact": {"name", "size", "hash"},
        "ListArtifacts": {"name_filter", "id_filter"},
        "GetSignedArtifactURL": {"name"},
        "DeleteArtifact": {"name"},
    }

    @route("POST", TWIRP + r"(\w+)")
    def call(self, request, method):
        github = self.github
        backend, job = scope(request.headers.get("authorization", ""))
        if backend is None:
            return github.refuse(twirp_error(401, "unauthenticated", "no token of a job"))
        if method not in self.FIELDS:
            return github.refuse(twirp_error(404, "bad_route", method))
        body = request.json()
        ids = {"workflow_run_backend_id": backend, "workflow_job_run_backend_id": job}
        unknown = set(body) - self.FIELDS[method] - set(ids)
        if github.style == "act" and unknown:
            return github.refuse(twirp_error(500, "internal", f"unknown field {sorted(unknown)}"))
        if body.get("workflow_run_backend_id") != backend:
            return github.refuse(twirp_error(403, "permission_denied", "another run"))
        answer = getattr(self, method)(body, ids)
        if isinstance(answer, dict):
            answer = Response(200, camel(answer) if github.style == "act" else answer)
        return answer

    def find(self, body):
        return self.github.artifacts.get((body["workflow_run_backend_id"], body.get("name")))

    def CreateArtifact(self, body, ids):
        github = self.github
        name = body.get("name", "")
        if not name or re.search(r'["<>:|*?\r\n\\/]', name):
            return github.refuse(twirp_error(400, "invalid_argument", "name"))
        known = self.find(body)
        if known and known.final and github.style == "azure":
            return twirp_error(409, "already_exists", "an artifact with this name already exists on the workflow run")
        artifact = github.new_artifact(name, ids["workflow_run_backend_id"], ids["workflow_job_run_backend_id"])
        artifact.request = body
        return {"ok": True, "signed_upload_url": github.signed(artifact, UPLOAD_SIG) + "&sp=cw&spr=https&sr=b"}

    def FinalizeArtifact(self, body, ids):
        github = self.github
        artifact = self.find(body)
        if artifact is None:
            return github.refuse(twirp_error(404, "not_found", "artifact not found"))
        if github.style == "azure":
            if artifact.final:
                return twirp_error(409, "already_exists", "the artifact is final")
            if artifact.data is None or body.get("size") != str(artifact.size):
                return github.refuse(twirp_error(400, "invalid_argument", "size mismatch"))
            if body.get("hash") != sha256(artifact.data):
                return github.refuse(twirp_error(400, "invalid_argument", "hash mismatch"))
        artifact.digest = body.get("hash")
        artifact.final = True
        return {"ok": True, "artifact_id": str(artifact.id)}

    def ListArtifacts(self, body, ids):
        rows = []
        if self.github.style == "act" and not any(a.final for a in self.github.artifacts.values()):
            # It looks into a directory that is not there, panics, and hangs up.
            return None
        for artifact in self.github.artifacts.values():
            wanted = artifact.final and artifact.backend == ids["workflow_run_backend_id"]
            wanted = wanted and body.get("name_filter") in (None, artifact.name)
            if wanted and str(body.get("id_filter", artifact.id)) == str(artifact.id):
                row = {
                    "workflow_run_backend_id": artifact.backend,
                    "workflow_job_run_backend_id": artifact.job,
                    "database_id": str(artifact.id),
                    "name": artifact.name,
                    "size": str(artifact.size),
                    "created_at": artifact.created,
                    "digest": artifact.digest,
                }
                rows.append({key: value for key, value in row.items() if value is not None})
        return {"artifacts": rows}

    def GetSignedArtifactURL(self, body, ids):
        artifact = self.find(body)
        if artifact is None or not artifact.final:
            return twirp_error(404, "not_found", "artifact not found")
        return {"name": artifact.name, "signed_url": self.github.signed(artifact, DOWNLOAD_SIG) + "&rscd=attachment"}

    def DeleteArtifact(self, body, ids):
        artifact = self.find(body)
        if artifact is None:
            return twirp_error(404, "not_found", "artifact not found")
        del self.github.artifacts[(artifact.backend, artifact.name)]
        return {"ok": True, "artifact_id": str(artifact.id)}


class Storage(Part):
    """Azure's block blobs, behind signed addresses."""

    @route("(?:GET|HEAD|PUT)", r"/blob/(\d+)")
    def blob(self, request, number):
        github = self.github
        if "authorization" in request.headers:
            return self.error(400, "InvalidAuthenticationInfo")
        wanted = DOWNLOAD_SIG if request.method in ("GET", "HEAD") else UPLOAD_SIG
        if f"sig={wanted}" not in request.raw_query.split("&"):
            return self.error(403, "AuthenticationFailed")
        artifact = next((a for a in github.artifacts.values() if a.id == int(number)), None)
        if artifact is None:
            return self.error(404, "BlobNotFound")
        if request.method == "PUT":
            return self.put(artifact, request, request.query.get("comp"))
        headers = {"Content-Type": "application/zip", "Content-Disposition": 'attachment; filename="artifact.zip"'}
        return Response(200, artifact.data, headers)

    def put(self, artifact, request, comp):
        github = self.github
        if comp == "block":
            block_id = request.query["blockid"]
            base64.b64decode(block_id, validate=True)
            if any(len(known) != len(block_id) for known in artifact.blocks):
                return self.error(400, "InvalidBlobOrBlock")
            if not request.body:
                return self.error(400, "InvalidHeaderValue")
            path = github.directory / f"{artifact.id}-{len(artifact.blocks)}"
            path.write_bytes(request.body)
            artifact.blocks[block_id] = path
        elif comp == "blocklist":
            ids = re.findall(r"<Latest>([^<]*)</Latest>", request.body.decode())
            if github.style == "act":
                ids = list(artifact.blocks)
            if any(block_id not in artifact.blocks for block_id in ids):
                return self.error(400, "InvalidBlockList")
            artifact.data = github.directory / f"{artifact.id}.zip"
            with artifact.data.open("wb") as blob:
                for block_id in ids:
                    with artifact.blocks[block_id].open("rb") as block:
                        shutil.copyfileobj(block, blob)
            artifact.size = artifact.data.stat().st_size
        else:
            return self.error(400, "MissingRequiredHeader")
        return Response(201, b"", {"x-ms-version": request.headers.get("x-ms-version", ""), "ETag": '"0x8D0"'})

    def error(self, status, code):
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>"
        headers = {"Content-Type": "application/xml", "x-ms-error-code": code}
        return self.github.refuse(Response(status, body.encode(), headers))


class Rest(Part):
    """What the REST API says about repositories and artifacts."""

    @route("GET", r"/repos/([^/]+/[^/]+)")
    def repository(self, request, name):
        return self.guarded(request, name) or Response(200, {"id": REPOSITORY_ID, "full_name": name})

    @route("GET", r"/repos/([^/]+/[^/]+)/actions/runs")
    def runs(self, request, name):
        rows = [run for run in self.github.runs.values() if run.get("event") == request.query.get("event")]
        refusal = self.guarded(request, name, "actions: read")
        return refusal or Response(200, {"total_count": len(rows), "workflow_runs": rows})

    @route("GET", r"/repos/([^/]+/[^/]+)/actions/runs/(\d+)")
    def run(self, request, name, run_id):
        refusal = self.guarded(request, name, "actions: read")
        run = self.github.runs.get(int(run_id))
        return refusal or (message(404, "Not Found") if run is None else Response(200, {"id": int(run_id), **run}))

    @route("GET", r"/repos/([^/]+/[^/]+)/actions/runs/(\d+)/artifacts")
    def of_run(self, request, name, run_id):
        chosen = [a for a in self.github.artifacts.values() if a.run_id == int(run_id)]
        return self.guarded(request, name, "actions: read") or self.page(request, chosen)

    @route("GET", r"/repos/([^/]+/[^/]+)/actions/artifacts")
    def of_repository(self, request, name):
        return self.guarded(request, name, "actions: read") or self.page(request, self.github.artifacts.values())

    @route("(?:GET|DELETE)", r"/repos/([^/]+/[^/]+)/actions/artifacts/(\d+)")
    def one(self, request, name, number):
        artifact = next((a for a in self.github.artifacts.values() if a.id == int(number) and a.final), None)
        refusal = self.guarded(request, name)
        if refusal or artifact is None:
            return refusal or message(404, "Not Found")
        if request.method == "DELETE":
            del self.github.artifacts[(artifact.backend, artifact.name)]
            return Response(204)
        return Response(200, self.row(artifact))

    @route("GET", r"/repos/([^/]+/[^/]+)/actions/artifacts/(\d+)/zip")
    def zip(self, request, name, number):
        artifact = next((a for a in self.github.artifacts.values() if a.id == int(number) and a.final), None)
        refusal = self.guarded(request, name)
        if refusal or artifact is None:
            return refusal or message(404, "Not Found")
        if artifact.expired:
            return message(410, "Artifact has expired")
        return Response(302, b"", {"Location": self.github.signed(artifact, DOWNLOAD_SIG)})

    def page(self, request, artifacts):
        name = request.query.get("name")
        rows = [self.row(a) for a in artifacts if a.final and name in (None, a.name)]
        rows.sort(key=lambda row: -row["id"])
        size, number = int(request.query.get("per_page", 30)), int(request.query.get("page", 1))
        return Response(200, {"total_count": len(rows), "artifacts": rows[(number - 1) * size : number * size]})

    def row(self, artifact):
        base = f"{self.github.address}/repos/{REPOSITORY}/actions/artifacts/{artifact.id}"
        return {
            "id": artifact.id,
            "node_id": "x",
            "name": artifact.name,
            "size_in_bytes": artifact.size,
            "url": base,
            "archive_download_url": base + "/zip",
            "expired": artifact.expired,
            "created_at": artifact.created,
            "updated_at": artifact.created,
            "expires_at": None,
            "digest": artifact.digest,
            "workflow_run": {
                "id": artifact.run_id,
                "repository_id": REPOSITORY_ID,
                "head_repository_id": artifact.head_repository_id,
                "head_branch": "main",
                "head_sha": "0" * 40,
            },
        }


class Statuses(Part):
    """The statuses of commits."""

    @route("POST", r"/repos/([^/]+/[^/]+)/statuses/([0-9a-f]{40})")
    def set(self, request, name, sha):
        refusal = self.guarded(request, name, "statuses: write")
        if refusal:
            return refusal
        status = {"sha": sha, **request.json()}
        if status["state"] not in ("error", "failure", "pending", "success") or len(status["description"]) > 140:
            return self.github.refuse(message(422, "Validation Failed"))
        self.github.statuses.append(status)
        return Response(201, status)

    @route("GET", r"/repos/([^/]+/[^/]+)/commits/([0-9a-f]{40})/statuses")
    def of_commit(self, request, name, sha):
        refusal = self.guarded(request, name, "statuses: read")
        if refusal:
            return refusal
        rows = [{"id": number, **status} for number, status in enumerate(self.github.statuses) if status["sha"] == sha]
        rows.reverse()
        size, number = int(request.query.get("per_page", 30)), int(request.query.get("page", 1))
        return Response(200, rows[(number - 1) * size : number * size])


class Pulls(Part):
    """The pull requests of the repository, which is public."""

    @route("GET", r"/repos/([^/]+/[^/]+)/pulls")
    def list(self, request, name):
        owner, _, branch = request.query.get("head", "").partition(":")
        rows = [
            pull for pull in self.github.pulls
            if "head" not in request.query
            or (pull["head"]["ref"] == branch and pull["head"]["repo"]["full_name"].startswith(f"{owner}/"))
        ]  # fmt: skip
        return self.guarded(request, name) or Response(200, rows)


class Conversation(Part):
    """The comments of pull requests, and who may write. Nobody has edited anything."""

    @route("GET", r"/repos/([^/]+/[^/]+)/issues/comments/(\d+)")
    def one(self, request, name, number):
        return self.guarded(request, name) or self.found(self.github.comments.get(int(number)))

    @route("GET", r"/repos/([^/]+/[^/]+)/issues/(\d+)/comments")
    def all(self, request, name, number):
        rows = [row for row in self.github.comments.values() if row["issue_url"].endswith(f"/issues/{number}")]
        return self.guarded(request, name) or Response(200, rows)

    @route("POST", r"/repos/([^/]+/[^/]+)/issues/(\d+)/comments")
    def write(self, request, name, number):
        refusal = self.guarded(request, name, "pull-requests: write")
        return refusal or Response(201, self.github.comment(int(number), "github-actions[bot]", request.json()["body"]))

    @route("PATCH", r"/repos/([^/]+/[^/]+)/issues/comments/(\d+)")
    def rewrite(self, request, name, number):
        refusal = self.guarded(request, name, "pull-requests: write")
        if refusal:
            return refusal
        self.github.comments[int(number)]["body"] = request.json()["body"]
        return Response(200, self.github.comments[int(number)])

    @route("POST", r"/repos/([^/]+/[^/]+)/issues/comments/(\d+)/reactions")
    def react(self, request, name, number):
        refusal = self.guarded(request, name, "pull-requests: write")
        if not refusal:
            self.github.reactions.append((int(number), request.json()["content"]))
        return refusal or Response(201, {"id": 1})

    @route("POST", r"/graphql")
    def edited(self, request):
        return self.guarded(request, REPOSITORY) or Response(200, {"data": {"node": {"lastEditedAt": None}}})

    @route("GET", r"/user")
    def user(self, request):
        return message(403, "Resource not accessible by integration")

    @route("GET", r"/repos/([^/]+/[^/]+)/pulls/(\d+)")
    def pull(self, request, name, number):
        pulls = [pull for pull in self.github.pulls if pull["number"] == int(number)]
        return self.guarded(request, name) or self.found(pulls[0] if pulls else None)

    @route("GET", r"/repos/([^/]+/[^/]+)/collaborators/([^/]+)/permission")
    def permission(self, request, name, login):
        level = "write" if login in self.github.writers else "read"
        user = {"id": account(login), "login": login}
        return self.guarded(request, name) or Response(200, {"permission": level, "user": user})

    @route("GET", r"/repos/([^/]+/[^/]+)/contents/(.+)")
    def contents(self, request, name, path):
        text = self.github.contents.get((request.query.get("ref"), path))
        row = text if text is None else {"content": base64.b64encode(text.encode()).decode()}
        return self.guarded(request, name) or self.found(row)

    def found(self, row):
        return message(404, "Not Found") if row is None else Response(200, row)


def account(login):
    """The id of an account."""
    return int.from_bytes(hashlib.sha256(login.encode()).digest()[:4])


class GitData(Part):
    """Tags and refs of the repository, as far as jobs make them."""

    @route("POST", r"/repos/([^/]+/[^/]+)/git/tags")
    def make_tag(self, request, name):
        refusal = self.guarded(request, name, "contents: write")
        if refusal:
            return refusal
        sha = f"{len(self.github.tags) + 1:040x}"
        self.github.tags[sha] = {**request.json(), "sha": sha}
        return Response(201, self.github.tags[sha])

    @route("GET", r"/repos/([^/]+/[^/]+)/git/tags/([0-9a-f]{40})")
    def tag(self, request, name, sha):
        return self.guarded(request, name) or self.found(self.github.tags.get(sha))

    @route("GET", r"/repos/([^/]+/[^/]+)/git/commits/([0-9a-f]{40})")
    def commit(self, request, name, sha):
        tree = self.github.trees.get(sha)
        row = tree and {"sha": sha, "tree": {"sha": tree}}
        return self.guarded(request, name) or self.found(row)

    @route("POST", r"/repos/([^/]+/[^/]+)/git/refs")
    def make_ref(self, request, name):
        refusal = self.guarded(request, name, "contents: write")
        if refusal:
            return refusal
        wanted = request.json()
        if wanted["ref"] in self.github.refs:
            return message(422, "Reference already exists")
        self.github.refs[wanted["ref"]] = wanted["sha"]
        return Response(201, self.row(wanted["ref"]))

    @route("GET", r"/repos/([^/]+/[^/]+)/git/ref/(.+)")
    def ref(self, request, name, ref):
        known = f"refs/{ref}" in self.github.refs
        return self.guarded(request, name) or self.found(self.row(f"refs/{ref}") if known else None)

    def row(self, ref):
        return {"ref": ref, "object": {"type": "tag", "sha": self.github.refs[ref]}}

    def found(self, row):
        return message(404, "Not Found") if row is None else Response(200, row)


class Dispatches(Part):
    """Runs of workflows that are started from outside; a test plays them."""

    @route("POST", r"/repos/([^/]+/[^/]+)/actions/workflows/([^/]+)/dispatches")
    def start(self, request, name, workflow):
        refusal = self.guarded(request, name, "actions: write")
        if refusal:
            return refusal
        body = request.json()
        if any(not isinstance(value, str) for value in body.get("inputs", {}).values()) or len(body["inputs"]) > 25:
            return self.github.refuse(message(422, "Invalid value for input"))
        run_id = 9000 + len(self.github.dispatches)
        self.github.dispatches.append({"workflow": workflow, "run_id": run_id, **body})
        if not body.get("return_run_details"):
            return Response(204)
        page = f"https://github.com/{REPOSITORY}/actions/runs/{run_id}"
        return Response(200, {"workflow_run_id": run_id, "run_url": page, "html_url": page})


PARTS = [ArtifactService, Storage, Rest, Statuses, Pulls, Conversation, GitData, Dispatches]


class GitHub:
    """A running GitHub. Close it, or use it in a `with`."""

    def __init__(self, style="azure", tls=None):
        """`tls` is an `ssl.SSLContext`; then the host is `localhost`, as certificates name hosts."""
        self.style = style
        self.directory = Path(tempfile.mkdtemp(prefix="ll-github-"))
        self.token = TOKEN
        # Of the token, such as `{"statuses": "write"}`; without any, it may do everything.
        self.permissions = None
        self.artifacts = {}
        self.pulls = []
        self.comments = {}
        self.reactions = []
        # The names of those who may write, and the text of files, by branch and path.
        self.writers = set()
        self.contents = {}
        # What is said of runs of workflows, by their number.
        self.runs = {}
        self.statuses = []
        self.tags = {}
        self.refs = {}
        # The trees of commits.
        self.trees = {}
        self.dispatches = []
        self.requests = []
        self.refusals = []
        self.faults = []
        self.next_id = 1000
        self.lock = threading.RLock()
        self.table = [row for part in PARTS for row in part(self).routes()]
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
            self.address = f"https://localhost:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        shutil.rmtree(self.directory)

    def environment(self, run_id=42, tokens=True):
        """What a job of the run has in its environment; `tokens` are those an action has and a `run:` step has not."""
        environment = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_API_URL": self.address,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_REPOSITORY_ID": str(REPOSITORY_ID),
            "GITHUB_RUN_ID": str(run_id),
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_RETENTION_DAYS": "90",
            "GITHUB_TOKEN": self.token,
        }
        if tokens:
            environment["ACTIONS_RUNTIME_TOKEN"] = job_token(f"run-{run_id}", "job")
            environment["ACTIONS_RESULTS_URL"] = self.address + "/"
        return environment

    def comment(self, pull, login, body):
        """Adds a comment to a pull request, and returns it."""
        number, at = 500 + len(self.comments), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        kind = "Bot" if login.endswith("[bot]") else "User"
        self.comments[number] = {
            "id": number, "node_id": f"IC_{number}", "body": body, "created_at": at, "updated_at": at,
            "user": {"id": account(login), "login": login, "type": kind}, "performed_via_github_app": None,
            "issue_url": f"https://api.github.com/repos/{REPOSITORY}/issues/{pull}",
        }  # fmt: skip
        return self.comments[number]

    def permits(self, permission):
        scope, _, level = permission.partition(": ")
        granted = "write" if self.permissions is None else self.permissions.get(scope)
        return granted in (level, "write")

    def fault(self, match, times=1, response=None, cut=False):
        self.faults.append(Fault(match, times, response, cut))

    def count(self, text):
        """How many requests had this in `METHOD path?query`."""
        return sum(text in f"{r.method} {r.path}?{r.raw_query}" for r in self.requests)

    def new_artifact(self, name, backend, job="job"):
        self.next_id += 1
        run_id = int(backend.rsplit("-", 1)[-1])
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        artifact = Artifact(self.next_id, name, backend, job, run_id, created=created)
        self.artifacts[(backend, name)] = artifact
        return artifact

    def store(self, name, files, run_id=42, **changes):
        """Stores an artifact as another job would. `files` are names with texts, or the bytes of the blob."""
        artifact = self.new_artifact(name, f"run-{run_id}")
        artifact.data = self.directory / f"{artifact.id}.zip"
        artifact.data.write_bytes(files if isinstance(files, bytes) else zipped(files))
        artifact.size, artifact.digest, artifact.final = artifact.data.stat().st_size, sha256(artifact.data), True
        for key, value in changes.items():
            setattr(artifact, key, value)
        return artifact

    def signed(self, artifact, sig):
        return f"{self.address}/blob/{artifact.id}?se=2030-01-01T00%3A00%3A00Z&sig={sig}"

    def refuse(self, response):
        self.refusals.append(response)
        return response

    def answer(self, request):
        with self.lock:
            self.requests.append(request)
            name = f"{request.method} {request.path}?{request.raw_query}"
            fault = next((f for f in self.faults if f.times > 0 and f.match in name), None)
            if fault is not None:
                fault.times -= 1
                if not fault.cut:
                    return fault.response, False
            for method, pattern, function in self.table:
                match = re.fullmatch(method, request.method) and pattern.fullmatch(request.path)
                if match:
                    return function(request, *match.groups()), fault is not None
            return self.refuse(message(404, "no such route")), False


def handler(github):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def handle_request(self):
            split = urlsplit(self.path)
            query = {key: values[-1] for key, values in parse_qs(split.query, keep_blank_values=True).items()}
            headers = {key.lower(): value for key, value in self.headers.items()}
            request = Request(self.command, split.path, split.query, query, headers, self.body())
            response, cut = github.answer(request)
            # Blocks are many and long, and nobody looks at them again.
            if "comp=block&" in split.query:
                request.body = b""
            if response is None:
                self.close_connection = True
                return
            body, headers = response.body, dict(response.headers)
            if isinstance(body, dict | list):
                headers.setdefault("Content-Type", "application/json; charset=utf-8")
                body = json.dumps(body).encode()
            length = body.stat().st_size if isinstance(body, Path) else len(body)
            self.send_response(response.status)
            for key, value in {**headers, "Content-Length": str(length)}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "HEAD":
                return
            left = length // 2 if cut else length
            with body.open("rb") if isinstance(body, Path) else io.BytesIO(body) as source:
                while left > 0:
                    piece = source.read(min(left, 1 << 20))
                    self.wfile.write(piece)
                    left -= len(piece)
            self.close_connection = self.close_connection or cut

        def body(self):
            if self.headers.get("transfer-encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("content-length") or 0))
            pieces = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)

        def handle(self):
            # A client that gave up is no failure of the server.
            try:
                super().handle()
            except ConnectionError:
                pass

        do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = handle_request

    return Handler


def job_token(backend, job):
    """A token as the runner has it, but for its signature, which clients do not check."""
    claims = {"scp": f"Actions.ExampleScope Actions.Results:{backend}:{job}", "exp": 4102444800, "iat": 1}
    parts = [{"alg": "RS256", "typ": "JWT"}, claims]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join([*encoded, "c2ln"])


def scope(authorization):
    """The run and job of a token, or nothing."""
    match = re.fullmatch(r"Bearer [^.]+\.([^.]+)\.[^.]*", authorization)
    if not match:
        return None, None
    payload = match[1] + "=" * (-len(match[1]) % 4)
    for part in json.loads(base64.urlsafe_b64decode(payload))["scp"].split():
        if part.startswith("Actions.Results:"):
            return tuple(part.split(":")[1:])
    return None, None


def camel(value):
    if isinstance(value, dict):
        return {re.sub("_(.)", lambda m: m[1].upper(), key): camel(item) for key, item in value.items()}
    return [camel(item) for item in value] if isinstance(value, list) else value


def sha256(path):
    with Path(path).open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()
