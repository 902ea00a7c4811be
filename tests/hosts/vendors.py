"""The HTTP services behind the CLIs of agents, as one small server on loopback: what a model says is scripted by a test.

A reply is the same for every vendor (`Say`, `Use`, `Refuse`, `Fail`); a `Dialect` puts it into the vendor's words.
"""

import json
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Say:
    """The model says something."""

    text: str
    input: int = 100
    output: int = 20


@dataclass(frozen=True)
class Use:
    """The model calls a tool."""

    tool: str
    arguments: dict
    input: int = 100
    output: int = 20


@dataclass(frozen=True)
class Refuse:
    """The model declines to answer."""

    input: int = 100
    output: int = 0


@dataclass(frozen=True)
class Fail:
    """The service answers with an error."""

    status: int
    kind: str = "error"
    message: str = "scripted failure"
    headers: dict = field(default_factory=dict)


class Call:
    """A request for words of the model."""

    def __init__(self, dialect, path, headers, body):
        self.dialect = dialect
        self.path = path
        self.headers = headers
        self.body = body
        self.model = dialect.model(path, body)
        self.tools = dialect.tools(body)
        said = dialect.said(body)
        self.text = json.dumps(said, ensure_ascii=False)
        #: The last of what was said.
        self.newest = json.dumps(said[-1:], ensure_ascii=False)


class Dialect:
    """How a vendor says things."""

    #: What is in a request that a CLI makes for itself, beside the conversation.
    aside = None

    def takes(self, path):
        raise NotImplementedError

    def model(self, path, body):
        return body["model"]

    def tools(self, body):
        """The names of the tools that the model may call."""
        raise NotImplementedError

    def said(self, body):
        """What was said so far, without the instructions of the CLI."""
        raise NotImplementedError

    def events(self, call, reply):
        """The reply as server-sent events: pairs of a name, which can be None, and data."""
        raise NotImplementedError

    def whole(self, call, reply):
        """The reply as one document."""
        raise NotImplementedError

    def streams(self, call):
        return bool(call.body.get("stream"))

    def error(self, fail):
        return {"error": {"type": fail.kind, "code": fail.kind, "message": fail.message}}


class Anthropic(Dialect):
    def takes(self, path):
        return path.endswith("/v1/messages")

    def tools(self, body):
        return [tool["name"] for tool in body.get("tools", [])]

    def said(self, body):
        return body.get("messages", [])

    def error(self, fail):
        return {"type": "error", "error": {"type": fail.kind, "message": fail.message}}

    def block(self, reply):
        match reply:
            case Say():
                return {"type": "text", "text": reply.text}
            case Use():
                return {"type": "tool_use", "id": f"toolu_{id(reply):x}", "name": reply.tool, "input": reply.arguments}

    def whole(self, call, reply):
        block = self.block(reply)
        reason = {Say: "end_turn", Use: "tool_use", Refuse: "refusal"}[type(reply)]
        return {
            "id": f"msg_{id(call):x}",
            "type": "message",
            "role": "assistant",
            "model": call.model,
            "content": [block] if block else [],
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {"input_tokens": reply.input, "output_tokens": reply.output},
        }

    def events(self, call, reply):
        message = self.whole(call, reply)
        blocks = message["content"]
        start = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
        yield "message_start", {"type": "message_start", "message": start}
        for index, block in enumerate(blocks):
            empty = {**block, "text": ""} if "text" in block else {**block, "input": {}}
            delta = (
                {"type": "text_delta", "text": block["text"]}
                if "text" in block
                else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            )
            yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
            yield "content_block_stop", {"type": "content_block_stop", "index": index}
        ends = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": ends, "usage": message["usage"]}
        yield "message_stop", {"type": "message_stop"}


class Responses(Dialect):
    """OpenAI's newer interface."""

    def takes(self, path):
        return path.endswith("/responses")

    def tools(self, body):
        return [tool.get("name", tool["type"]) for tool in body.get("tools", [])]

    def said(self, body):
        return body.get("input", [])

    def item(self, reply):
        match reply:
            case Say():
                part = {"type": "output_text", "text": reply.text, "annotations": []}
            case Use():
                arguments = json.dumps(reply.arguments)
                call = f"call_{id(reply):x}"
                return {"type": "function_call", "id": call, "call_id": call, "name": reply.tool, "arguments": arguments}
            case Refuse():
                part = {"type": "refusal", "refusal": "I cannot help with that."}
        return {"type": "message", "id": f"msg_{id(reply):x}", "role": "assistant", "status": "completed", "content": [part]}

    def whole(self, call, reply):
        usage = {
            "input_tokens": reply.input,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": reply.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": reply.input + reply.output,
        }
        document = {"id": f"resp_{id(call):x}", "object": "response", "status": "completed", "model": call.model}
        return {**document, "output": [self.item(reply)], "usage": usage}

    def events(self, call, reply):
        response = self.whole(call, reply)
        yield "response.created", {
            "type": "response.created",
            "response": {**response, "status": "in_progress", "output": [], "usage": None},
        }
        for item in response["output"]:
            yield "response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}
        yield "response.completed", {"type": "response.completed", "response": response}


class Chat(Dialect):
    """OpenAI's older interface, which many services speak."""

    # After a turn, qwen asks what it should remember.
    aside = "update the managed memory index"

    def takes(self, path):
        return path.endswith("/chat/completions")

    def tools(self, body):
        return [tool["function"]["name"] for tool in body.get("tools", [])]

    def said(self, body):
        return [message for message in body.get("messages", []) if message["role"] != "system"]

    def message(self, reply):
        match reply:
            case Say():
                return {"role": "assistant", "content": reply.text}
            case Use():
                function = {"name": reply.tool, "arguments": json.dumps(reply.arguments)}
                call = {"index": 0, "id": f"call_{id(reply):x}", "type": "function", "function": function}
                return {"role": "assistant", "content": None, "tool_calls": [call]}
            case Refuse():
                return {"role": "assistant", "content": None, "refusal": "I cannot help with that."}

    def document(self, call, reply, kind, choice, usage):
        reason = {Say: "stop", Use: "tool_calls", Refuse: "content_filter"}[type(reply)]
        counts = {"prompt_tokens": reply.input, "completion_tokens": reply.output, "total_tokens": reply.input + reply.output}
        return {
            "id": f"chatcmpl-{id(call):x}",
            "object": kind,
            "created": 1_700_000_000,
            "model": call.model,
            "choices": [{"index": 0, **choice, "finish_reason": reason}],
            **({"usage": counts} if usage else {}),
        }

    def whole(self, call, reply):
        return self.document(call, reply, "chat.completion", {"message": self.message(reply)}, True)

    def events(self, call, reply):
        yield None, self.document(call, reply, "chat.completion.chunk", {"delta": self.message(reply)}, True)
        yield None, "[DONE]"


class Gemini(Dialect):
    def takes(self, path):
        return path.endswith((":streamGenerateContent", ":generateContent"))

    def streams(self, call):
        return ":streamGenerateContent" in call.path

    def model(self, path, body):
        return path.rsplit("/", 1)[-1].partition(":")[0]

    def tools(self, body):
        return [tool["name"] for tools in body.get("tools", []) for tool in tools.get("functionDeclarations", [])]

    def said(self, body):
        return body.get("contents", [])

    def error(self, fail):
        kinds = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED"}
        return {"error": {"code": fail.status, "message": fail.message, "status": kinds.get(fail.status, "UNAVAILABLE")}}

    def whole(self, call, reply):
        match reply:
            case Say():
                parts, reason = [{"text": reply.text}], "STOP"
            case Use():
                parts, reason = [{"functionCall": {"name": reply.tool, "args": reply.arguments}}], "STOP"
            case Refuse():
                parts, reason = [], "SAFETY"
        content = {"role": "model", "parts": parts}
        return {
            "candidates": [{"content": content, "finishReason": reason, "index": 0}],
            "usageMetadata": {
                "promptTokenCount": reply.input,
                "candidatesTokenCount": reply.output,
                "totalTokenCount": reply.input + reply.output,
            },
            "modelVersion": call.model,
        }

    def events(self, call, reply):
        yield None, self.whole(call, reply)


DIALECTS = (Anthropic(), Responses(), Chat(), Gemini())


class Vendors:
    """All vendors at one port. `script` maps a call to a reply; a list is the replies in order, the last one again and again."""

    def __init__(self, script):
        self.calls = []
        self.strays = []
        self.lock = threading.Lock()
        self.script = script
        vendors = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                vendors.handle(self)

            do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = handle_any

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request, client_address):
                """A CLI that is stopped hangs up; that is no error of ours."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def reply(self, call):
        aside = call.dialect.aside
        if aside and aside in call.newest:
            return Say("Nothing.", input=0, output=0)
        with self.lock:
            self.calls.append(call)
            if callable(self.script):
                return self.script(call)
            return self.script[min(len(self.calls), len(self.script)) - 1]

    def handle(self, request):
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        path = request.path.partition("?")[0]
        dialect = next((dialect for dialect in DIALECTS if dialect.takes(path)), None)
        if dialect is None or request.command != "POST":
            with self.lock:
                self.strays.append(f"{request.command} {request.path}")
            return self.send(request, 404, {"error": {"type": "not_found_error", "message": "not scripted"}})
        call = Call(dialect, path, dict(request.headers), json.loads(body))
        reply = self.reply(call)
        if isinstance(reply, Fail):
            return self.send(request, reply.status, dialect.error(reply), reply.headers)
        if not dialect.streams(call):
            return self.send(request, 200, dialect.whole(call, reply))
        text = "".join(
            (f"event: {name}\n" if name else "") + f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"
            for name, data in dialect.events(call, reply)
        )
        self.send(request, 200, text, {"content-type": "text/event-stream"})

    def send(self, request, status, body, headers=None):
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        request.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            request.send_header(name, value)
        request.send_header("content-length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)


def closed_port():
    """A port of loopback that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
