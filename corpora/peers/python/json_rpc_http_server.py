"""A JSON-RPC 2.0 server over HTTP, after the specification alone; the Python standard library and nothing else.

    python3 json_rpc_http_server.py PORT [options: --help]

The body of each POST is one message or batch, the body of its reply the response or array of responses. The messages
themselves are answered by `json_rpc_server`, without streams. Bodies and connections are bounded; it listens on
127.0.0.1 only.
"""

import http.server
import re
import socketserver
import sys
import threading

from json_rpc_guards import Guards, inflate, options
from json_rpc_methods import MESSAGE_BYTES_MAX, Methods
from json_rpc_replies import MESSAGE_TOO_LARGE, failure, fitted, text_of
from json_rpc_server import Server

BODY_BYTES_MAX = MESSAGE_BYTES_MAX
# What is read to get behind a body that is too large, so that the reply is not lost with the connection.
DISCARD_BYTES_MAX = 64 * 1_048_576
CHUNK_LINE_BYTES_MAX = 1_024
BLOCK_BYTES = 65_536
IDLE_S = 60
OVER_SIZE = text_of(failure(MESSAGE_TOO_LARGE))


class Malformed(Exception):
    """The request has no body that can be told from what follows it."""


class Exchange(Server):
    """Answers one body; methods and guards are those of all exchanges."""

    def __init__(self, methods, guards):
        super().__init__(None, methods, guards)
        self.body = b""

    def write(self, response):
        self.body = fitted(response)

    def wait(self):
        for thread in self.under_way:
            thread.join()
        return self.body


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "json-rpc"
    timeout = IDLE_S
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave together
    body_bytes_max = BODY_BYTES_MAX

    def do_POST(self):
        try:
            body = self.read_body()
        except Malformed:
            self.close_connection = True
            return self.reply(400)
        content_type = self.headers.get("Content-Type", "application/json").split(";")[0].strip()
        if content_type.lower() != "application/json":
            return self.reply(415)
        coding = self.headers.get("Content-Encoding", "identity").strip().lower()
        if coding not in (("identity", "gzip") if self.server.guards.gzip else ("identity",)):
            return self.reply(415)
        if body is None:
            return self.reply(413, OVER_SIZE)
        exchange = Exchange(self.server.methods, self.server.guards)
        with self.server.lock:
            if coding == "gzip":
                exchange.take_compressed(lambda: inflate(body))
            else:
                exchange.take(body, inflated=True)
        response = exchange.wait()
        self.reply(200 if response else 204, response)

    def refuse_method(self):
        try:
            self.read_body()
        except Malformed:
            self.close_connection = True
        self.reply(405)

    do_GET = do_HEAD = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = refuse_method

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
        while True:
            size = number(self.read_line().split(";")[0].strip(), 16)
            if size == 0:
                break
            yield size
            if self.read_line():
                raise Malformed
        for _ in range(100):
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
                    raise Malformed
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


class HttpServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port, guards, handler=Handler):
        super().__init__(("127.0.0.1", port), handler)
        self.methods = Methods()
        self.guards = guards
        self.lock = threading.Lock()

    def server_bind(self):
        # Without the look-up of our own name, which can take seconds.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]

    def handle_error(self, request, client_address):
        """A client that goes away is no fault of ours."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def main():
    found = options(port=int)
    found.stream = False
    HttpServer(found.port, Guards(found)).serve_forever()


if __name__ == "__main__":
    main()
