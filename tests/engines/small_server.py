"""A real, small chat server in a process of its own, with the faults a test asks for.

Usage: python small_server.py PORT MODEL [OPTION...]. Options: `unwell` never answers
its health address with 200, `deaf` ignores SIGTERM, `daemon` starts a child in a
session of its own that ignores SIGTERM and prints its pid, `fatal` ends with status 7
at the first chat request, `busy` refuses every one with 503, `narrow` with 400,
`stillborn` ends with status 3 before it listens.
"""

import json
import os
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DAEMON = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "time.sleep(600)"
)


CONTEXT = 100
"""Of `/tokenize`, which counts the characters of the last message."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = ""
    options = ()

    def log_message(self, *_):
        """Print nothing: the log is what tests look at."""

    def do_GET(self):
        if self.path == "/version":
            self._send(200, {"version": "small-1"})
            return
        self._send(503 if "unwell" in self.options else 200, {"status": "told"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            count = len(body["messages"][-1]["content"])
            self._send(200, {"count": count, "max_model_len": CONTEXT, "tokens": []})
            return
        if "narrow" in self.options:
            self._send(400, {"error": {"message": "no", "code": 400}})
            return
        if "busy" in self.options:
            self._send(503, {"error": {"message": "no room"}})
            return
        if "fatal" in self.options:
            sys.stdout.write("the server gives up\n")
            sys.stdout.flush()
            os._exit(7)
        text = body["messages"][-1]["content"].upper()
        if body.get("stream"):
            self._stream(text)
            return
        message = {"role": "assistant", "content": text}
        self._send(
            200,
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1,
                "model": self.model,
                "asked": body,
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {
                    "prompt_tokens": 3,
                    "completion_tokens": 2,
                    "total_tokens": 5,
                },
            },
        )

    def _stream(self, text):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for content in ("", *text):
            event = {"choices": [{"index": 0, "delta": {"content": content}}]}
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _send(self, status, payload):
        body = json.dumps(payload).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(port, model, *options):
    if "stillborn" in options:
        sys.stdout.write("no weights here\n")
        raise SystemExit(3)
    if "deaf" in options:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "daemon" in options:
        child = subprocess.Popen([sys.executable, "-c", DAEMON], start_new_session=True)
        sys.stdout.write(f"daemon {child.pid}\n")
    sys.stdout.write(f"server {os.getpid()}\n")
    sys.stdout.flush()
    Handler.model, Handler.options = model, options
    ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
