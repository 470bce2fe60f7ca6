"""The reference server as a process, and requests to it."""

import json
import os
import ssl
import subprocess
import sys
from contextlib import contextmanager
from http.client import HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

from tests.oracle.endpoints import CERTIFICATE, TLS

ROOT = Path(__file__).parent.parent.parent


class Reference:
    """A running reference server."""

    def __init__(self, url, log):
        self.url = url
        self._log = log

    def log(self):
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def sessions(self):
        """Every session's fate by its id."""
        fate = {}
        for line in self.log():
            if "session_id" in line:
                fate[line["session_id"]] = line["event"]
        return fate

    def ask(self, method, path, body=None, **headers):
        """Send one request over TLS; return status and JSON, None without a body."""
        context = ssl.create_default_context(cafile=CERTIFICATE)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        parts = urlsplit(self.url)
        connection = HTTPSConnection(parts.hostname, parts.port, context=context)
        if isinstance(body, dict):
            body = json.dumps(body)
        try:
            connection.request(
                method, path, body, {n.replace("_", "-"): v for n, v in headers.items()}
            )
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        return response.status, json.loads(content) if content else None


@contextmanager
def reference_server(folder, pack, *options, port=0, **variables):
    """Serve a pack in a process of its own while the context lasts."""
    log = folder / "reference.log"
    command = [
        *(sys.executable, "-m", "harness.oracle.reference_server", str(pack)),
        *("--certificate", str(CERTIFICATE), "--key", str(TLS / "key.pem")),
        *("--log", str(log), "--port", str(port), "--timeout", "30"),
        *map(str, options),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            ready = process.stdout.readline()
            assert ready, "the reference server did not start"
            yield Reference(json.loads(ready)["url"], log)
        finally:
            process.terminate()
            assert process.wait(20) == 0
