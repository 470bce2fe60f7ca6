"""A listener for relays to find, and a look at processes that should be gone."""

import contextlib
import os
import select
import socket
import threading


class Listener:
    """Answers each connection's first byte with the connection's number."""

    def __init__(self):
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        number = 0
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.recv(1)
                connection.sendall(str(number).encode())
            number += 1

    def close(self):
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)


@contextlib.contextmanager
def listening():
    listener = Listener()
    try:
        yield listener
    finally:
        listener.close()


def is_gone(pid):
    """Wait up to a second for the end of a process."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 1.0)[0])
    finally:
        os.close(handle)
