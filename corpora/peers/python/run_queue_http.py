#!/usr/bin/env python3
"""An HTTP adapter: puts what is posted to /enqueue into the inbox of a queue.

    run_queue_http.py QUEUE PORT [HOST]

Where QUEUE_TOKEN is set, requests need `Authorization: Bearer` and its value; without it HOST has to be loopback.
"""

import hmac
import ipaddress
import os
import socket
import sys

import http_bodies
import run_queue_jobs
import strict_json


class Handler(http_bodies.Handler):
    server_version = "run_queue"
    queue, token = None, None

    def is_authorized(self):
        if self.token is None:
            return True
        given = self.headers.get("Authorization", "").encode("latin-1")
        return hmac.compare_digest(given, b"Bearer " + self.token.encode())

    def do_POST(self):
        try:
            body = self.read_body()
        except http_bodies.Malformed as error:
            self.close_connection = True
            return self.reply(413 if isinstance(error, http_bodies.TooLarge) else 400)
        if not self.is_authorized():
            return self.reply(401)
        if self.path.split("?")[0] != "/enqueue":
            return self.reply(404)
        if body is None or len(body) > run_queue_jobs.JOB_BYTES_MAX:
            return self.reply(413)
        try:
            name = run_queue_jobs.put(self.queue, body)
        except run_queue_jobs.Malformed as error:
            return self.reply(400, strict_json.dumps({"error": ascii(str(error))}).encode())
        except OSError:
            return self.reply(500)
        self.reply(202, strict_json.dumps({"queued": name}).encode())

    def other(self):
        try:
            self.read_body()
        except http_bodies.Malformed:
            self.close_connection = True
            return self.reply(400)
        path = self.path.split("?")[0]
        if path == "/health" and self.command == "GET":
            return self.reply(200, b'{"ok":true}')
        if not self.is_authorized():
            return self.reply(401)
        self.reply(405 if path == "/enqueue" else 404)

    do_GET = do_HEAD = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = other


def is_loopback(host):
    addresses = {info[4][0] for info in socket.getaddrinfo(host, None)}
    return all(ipaddress.ip_address(address).is_loopback for address in addresses)


def main(arguments):
    if len(arguments) not in (2, 3) or not arguments[1].isdecimal():
        print("usage: run_queue_http.py QUEUE PORT [HOST]", file=sys.stderr)
        return 2
    host = arguments[2] if len(arguments) == 3 else "127.0.0.1"
    Handler.queue, Handler.token = arguments[0], os.environ.get("QUEUE_TOKEN") or None
    try:
        if Handler.token is None and not is_loopback(host):
            print(f"{host} can be reached from elsewhere: set QUEUE_TOKEN", file=sys.stderr)
            return 2
        http_bodies.Server(int(arguments[1]), Handler, host).serve_forever()
    except (OSError, OverflowError) as error:
        print(f"cannot listen: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
