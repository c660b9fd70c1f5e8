"""Requests over HTTP whose bodies are messages: what the example servers have in common.

A server gives a `Handler` that answers bodies of JSON. Bodies, chunks and connections are bounded.
"""

import http.server
import re
import socketserver
import sys

# What is read to get behind a body that is too large, so that the reply is not lost with the connection.
DISCARD_BYTES_MAX = 64 * 1024 * 1024
CHUNK_LINE_BYTES_MAX = 1024
TRAILERS_MAX = 100
BLOCK_BYTES = 65_536
IDLE_S = 60


class Malformed(Exception):
    """The request has no body that can be told from what follows it."""


class TooLarge(Malformed):
    """The body is larger than what is read to its end."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave together
    body_bytes_max = 10 * 1024 * 1024
    # The body of a reply to what is too large.
    too_large = b""

    def answer(self, body):
        """Replies to a body of JSON."""
        raise NotImplementedError

    def is_here(self):
        """Whether the path is one of ours."""
        return True

    def do_POST(self):
        try:
            body = self.read_body()
        except Malformed:
            self.close_connection = True
            return self.reply(400)
        if not self.is_here():
            return self.reply(404)
        content_type = self.headers.get("Content-Type", "application/json").split(";")[0].strip()
        if content_type.lower() != "application/json":
            return self.reply(415)
        if body is None:
            return self.reply(413, self.too_large)
        self.answer(body)

    def refuse_method(self):
        try:
            self.read_body()
        except Malformed:
            self.close_connection = True
        self.reply(405 if self.is_here() else 404)

    do_GET = do_HEAD = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = refuse_method

    def handle_expect_100(self):
        # http.server leaves the line in its buffer, and the client would wait for it.
        self.send_response_only(100)
        self.end_headers()
        self.wfile.flush()
        return True

    def reply(self, status, body=b""):
        self.send_response(status)
        if status == 405:
            self.send_header("Allow", "POST")
        if body:
            self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def read_body(self):
        """Returns the body, or None where it is too large."""
        coding = self.headers.get("Transfer-Encoding")
        lengths = set(self.headers.get_all("Content-Length", []))
        if coding is None:
            if len(lengths) > 1:
                raise Malformed
            return self.collect([number(lengths.pop() if lengths else "0", 10)])
        if coding.strip().lower() != "chunked" or lengths:
            raise Malformed
        return self.collect(self.chunk_sizes())

    def chunk_sizes(self):
        """Yields the size of each chunk; what is between chunks is read on the way."""
        while size := number(self.read_line().split(";")[0].strip(), 16):
            yield size
            if self.read_line():
                raise Malformed
        for _ in range(TRAILERS_MAX):
            if not self.read_line():
                return
        raise Malformed

    def read_line(self):
        line = self.rfile.readline(CHUNK_LINE_BYTES_MAX + 1)
        if not line.endswith(b"\n") or len(line) > CHUNK_LINE_BYTES_MAX:
            raise Malformed
        return line.rstrip(b"\r\n").decode("latin-1")

    def collect(self, sizes):
        body, total = bytearray(), 0
        for size in sizes:
            while size > 0:
                block = self.rfile.read(min(size, BLOCK_BYTES))
                if not block:
                    raise Malformed
                size -= len(block)
                total += len(block)
                if total > DISCARD_BYTES_MAX:
                    raise TooLarge
                if total > self.body_bytes_max:
                    body.clear()
                else:
                    body += block
        return None if total > self.body_bytes_max else bytes(body)

    def log_message(self, *_):
        pass


def number(digits, base):
    if not re.fullmatch("[0-9]+" if base == 10 else "[0-9a-fA-F]+", digits) or len(digits) > 18:
        raise Malformed
    return int(digits, base)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port, handler, host="127.0.0.1"):
        super().__init__((host, port), handler)

    def server_bind(self):
        # Without the look-up of our own name, which can take seconds.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]

    def handle_error(self, request, client_address):
        """A client that goes away is no fault of ours."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)
