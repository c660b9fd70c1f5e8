"""A JSON-RPC 2.0 server over HTTP, after the specification alone; the Python standard library and nothing else.

    python3 json_rpc_http_server.py PORT [options: --help]

The body of each POST is one message or batch, the body of its reply the response or array of responses. The messages
themselves are answered by `json_rpc_server`, without streams.
"""

import threading

import http_bodies
from http_bodies import Handler
from json_rpc_guards import Guards, inflate, options
from json_rpc_methods import MESSAGE_BYTES_MAX, Methods
from json_rpc_replies import MESSAGE_TOO_LARGE, failure, fitted, text_of
from json_rpc_server import Server


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


class Bodies(Handler):
    server_version = "json-rpc"
    body_bytes_max = MESSAGE_BYTES_MAX
    too_large = text_of(failure(MESSAGE_TOO_LARGE))

    def answer(self, body):
        coding = self.headers.get("Content-Encoding", "identity").strip().lower()
        if coding not in (("identity", "gzip") if self.server.guards.gzip else ("identity",)):
            return self.reply(415)
        exchange = Exchange(self.server.methods, self.server.guards)
        with self.server.lock:
            if coding == "gzip":
                exchange.take_compressed(lambda: inflate(body))
            else:
                exchange.take(body, inflated=True)
        response = exchange.wait()
        self.reply(200 if response else 204, response)


def main():
    found = options(port=int)
    found.stream = False
    server = http_bodies.Server(found.port, Bodies)
    server.methods, server.guards, server.lock = Methods(), Guards(found), threading.Lock()
    server.serve_forever()


if __name__ == "__main__":
    main()
