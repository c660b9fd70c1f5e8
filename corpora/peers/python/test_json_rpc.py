"""Tests of the JSON-RPC example peers: python3 -m unittest test_json_rpc (in this folder, a second).

Rules with a clock are tested under a clock of our own.
"""

import base64
import gzip
import io
import json
import os
import sys
import unittest
import unittest.mock

sys.dont_write_bytecode = True

import json_rpc_guards as guards  # noqa: E402
import strict_json  # noqa: E402
from canonical_json import canonical  # noqa: E402
from json_rpc_server import Server  # noqa: E402

KEY = "test-key"
VECTORS = (
    (
        '{"jsonrpc":"2.0","id":1,"method":"validate_code","params":{"code":"x","language":"javascript","rules":[]},'
        '"auth":{"timestamp":1634567890}}',
        "o0XzQhHnpvzL/z4CrnvMovs27JTBi9adMUcOz0qMAYw=",
    ),
    (
        '{"jsonrpc":"2.0","id":"context_001","method":"update_context","params":{"action":"add",'
        '"context_type":"state","data":{"b":2,"a":[1,-1,0],"é":"😀/"}},'
        '"auth":{"timestamp":1634567890,"nonce":"n-1","key_id":"k1"}}',
        "ofnBRrCA94raWuAlOWo0GYJc179H2nFiAEqLp5mLXqo=",
    ),
)


def signature(message, key=KEY):
    text = guards.SIGNED + guards.signable_text(message)
    return base64.b64encode(guards.hmac.digest(key.encode(), text, "sha256")).decode()


def signed(auth, key=KEY, **members):
    message = {"jsonrpc": "2.0", "method": "peerproof.echo", "id": 1, **members, "auth": dict(auth)}
    message["auth"]["signature"] = signature(message, key)
    return message


class Canonical(unittest.TestCase):
    def test_numbers_are_written_as_ecmascript_writes_them(self):
        for spelling, text in (
            ("1.0", "1"), ("-0", "0"), ("-0.0", "0"), ("1e21", "1e+21"), ("1e20", "100000000000000000000"), ("1E-6", "0.000001"),
            ("1e-7", "1e-7"), ("0.1", "0.1"), ("1.5e300", "1.5e+300"), ("-12.50", "-12.5"), ("5e-324", "5e-324"),
            ("333333333.33333329", "333333333.3333333"), ("9007199254740991", "9007199254740991"),
        ):  # fmt: skip
            with self.subTest(spelling):
                self.assertEqual(canonical(strict_json.loads(spelling)), text)

    def test_names_are_sorted_by_their_utf_16(self):
        self.assertEqual(canonical({"\ufb33": 1, "😀": 2, "a": 3}), '{"a":3,"😀":2,"\ufb33":1}')

    def test_only_what_must_be_escaped_is(self):
        self.assertEqual(canonical('"\\/\b\x0b\x7f\u2028'), '"\\"\\\\/\\b\\u000b\x7f\u2028"')


class Signatures(unittest.TestCase):
    def setUp(self):
        self.time = 1_700_000_000.9
        self.gate = guards.Signatures(KEY, "k1", lambda: self.time)

    def auth(self, nonce, offset=0):
        return {"timestamp": int(self.time) + offset, "nonce": nonce}

    def test_vectors(self):
        for text, expected in VECTORS:
            self.assertEqual(signature(json.loads(text)), expected)

    def test_accepts_what_is_authentic_and_of_now_once(self):
        self.assertTrue(self.gate.accept(signed(self.auth("a"))))
        self.assertFalse(self.gate.accept(signed(self.auth("a"))))
        self.assertFalse(self.gate.accept(signed(self.auth("a"), id=2)))
        self.assertTrue(self.gate.accept(signed(self.auth("b" * 64, 300))))
        self.assertTrue(self.gate.accept(signed(self.auth("c", -300))))
        self.assertTrue(self.gate.accept(signed({**self.auth("d"), "key_id": "k1"})))
        self.time += 599
        self.assertFalse(self.gate.accept(signed(self.auth("a"))))
        self.time += 1
        self.assertTrue(self.gate.accept(signed(self.auth("a"))))

    def test_refuses_everything_else(self):
        good = signed(self.auth("a"))
        for auth in (
            self.auth("x", 301), self.auth("x", -301), self.auth("n" * 65), self.auth(""), self.auth(1), {"nonce": "x"},
            {"timestamp": int(self.time)}, {"timestamp": True, "nonce": "x"}, {**self.auth("x"), "key_id": "k2"},
            {**self.auth("x"), "timestamp": self.time}, {**self.auth("x"), "timestamp": str(int(self.time))},
        ):  # fmt: skip
            with self.subTest(auth):
                self.assertFalse(self.gate.accept(signed(auth)))
        self.assertFalse(self.gate.accept(signed(self.auth("a"), key="other")))
        self.assertFalse(self.gate.accept({**good, "id": 2}))
        self.assertFalse(self.gate.accept({**good, "more": None}))
        for spelling in (good["auth"]["signature"].rstrip("="), "", 1, None):
            changed = {**good, "auth": {**good["auth"], "signature": spelling}}
            self.assertFalse(self.gate.accept(changed))
        for auth in (None, [], "x"):
            self.assertFalse(self.gate.accept({**good, "auth": auth}))
        # None of this spent the nonce.
        self.assertTrue(self.gate.accept(good))

    def test_large_integers_cannot_be_signed(self):
        for params in ([2**53], {"a": [-(2**53)]}):
            with self.assertRaises(guards.Unsignable):
                self.gate.accept({"jsonrpc": "2.0", "method": "m", "params": params, "id": 1})


class RateLimit(unittest.TestCase):
    def test_a_sliding_window(self):
        time = 100.0
        limit = guards.RateLimit(2, 10, lambda: time)
        self.assertEqual((limit.wait_s(), limit.wait_s(), limit.wait_s()), (0, 0, 10))
        time = 109.0
        self.assertEqual(limit.wait_s(), 1)
        time = 110.0
        self.assertEqual((limit.wait_s(), limit.wait_s(), limit.wait_s()), (0, 0, 10))


class Inflate(unittest.TestCase):
    def test_inflates_members_one_after_the_other(self):
        data = os.urandom(100_000).hex().encode()
        self.assertEqual(guards.inflate(gzip.compress(data) + gzip.compress(b"end")), data + b"end")
        most = b" " * guards.MESSAGE_BYTES_MAX
        self.assertEqual(guards.inflate(gzip.compress(most)), most)

    def test_refuses_what_is_corrupt_or_too_large(self):
        whole = gzip.compress(b"[]")
        for data in (b"", whole[:-1], whole + b"x", whole[:-8] + b"\0" * 8, b"[]", whole[:5]):
            with self.subTest(data), self.assertRaises(guards.Corrupt):
                guards.inflate(data)
        with self.assertRaises(guards.TooLarge):
            guards.inflate(gzip.compress(b" " * (64 * guards.MESSAGE_BYTES_MAX)))


class Features(unittest.TestCase):
    def talk(self, *lines, arguments=("--gzip", "--stream")):
        out = io.BytesIO()
        out_lines = []
        with unittest.mock.patch.dict(os.environ, {"JSON_RPC_AUTH_KEY": KEY}):
            server = Server(out, guards=guards.Guards(guards.options(arguments)))
        for line in lines:
            server.take(line if isinstance(line, bytes) else json.dumps(line).encode())
        server.end()
        for line in out.getvalue().splitlines():
            out_lines.append(strict_json.loads(line))
        return out_lines

    def call(self, id, method="peerproof.echo", **params):
        return {"jsonrpc": "2.0", "method": method, "params": params, "id": id}

    def envelope(self, data):
        body = base64.b64encode(gzip.compress(data)).decode()
        return {"jsonrpc": "2.0", "encoding": "gzip", "body": body}

    def codes(self, *lines, **options):
        return [(line["id"], line.get("error", {}).get("code", 0)) for line in self.talk(*lines, **options)]

    def test_compressed_messages(self):
        call = json.dumps(self.call(7)).encode()
        envelope = self.envelope(call)
        self.assertEqual(self.codes(envelope), [(7, 0)])
        self.assertEqual(self.talk(self.envelope(b"[" + call + b"]"))[0][0]["id"], 7)
        for line, code in (
            (self.envelope(json.dumps(envelope).encode()), -32600),
            ({**envelope, "encoding": "br"}, -32600),
            ({**envelope, "body": 1}, -32600),
            ({**envelope, "body": "!" + envelope["body"]}, -32700),
            (self.envelope(b"{"), -32700),
            (self.envelope(b" " * 2_000_000), -32600),
        ):
            self.assertEqual(self.codes(line, self.call(1)), [(None, code), (1, 0)])
        self.assertEqual(self.talk([envelope])[0][0]["error"]["code"], -32600)
        self.assertEqual(self.codes(envelope, arguments=()), [(None, -32600)])
        # Members that nobody knows are ignored.
        self.assertEqual(self.codes({**self.call(3), "encoding": "gzip"}), [(3, 0)])

    def test_a_stream(self):
        params = {"task_type": "testing", "prompt": "p" * 40, "options": {"stream": True}}
        start, *data, end, response = self.talk(self.call("t", "execute_task", **params))
        self.assertEqual((start["method"], start["params"]["task_id"]), ("stream_start", "t"))
        self.assertEqual([part["params"]["sequence"] for part in data], list(range(1, len(data) + 1)))
        self.assertEqual((end["method"], end["params"]["total_chunks"]), ("stream_end", len(data)))
        self.assertEqual("".join(part["params"]["chunk"] for part in data), response["result"]["output"]["code"])
        self.assertEqual({part["params"]["stream_id"] for part in (start, *data, end)}, {start["params"]["stream_id"]})

    def test_no_stream(self):
        refused = {"task_type": "none", "prompt": "p", "options": {"stream": True}}
        self.assertEqual(self.codes(self.call(1, "execute_task", **refused)), [(1, -32602)])
        params = {"task_type": "testing", "prompt": "p", "options": {"stream": True}}
        self.assertEqual(len(self.talk([self.call(1, "execute_task", **params)])), 1)
        self.assertEqual(self.codes(self.call(1, "execute_task", **params), arguments=()), [(1, 0)])

    def test_signatures_and_rate(self):
        now = int(guards.time.time())
        arguments = ("--auth", "--rate-limit", "2/3600")
        calls = [signed({"timestamp": now, "nonce": f"{id}"}, id=id) for id in (1, 2, 3)]
        note = signed({"timestamp": now, "nonce": "note"}, method="peerproof.counter")
        del note["id"]
        self.assertEqual(
            self.codes(calls[0], calls[0], self.call(9), note, calls[1], calls[2], arguments=arguments),
            [(1, 0), (1, -32003), (9, -32003), (2, 0), (3, -32002)],
        )
        self.assertEqual(
            self.codes(b'{"id":1,"id":2}', b'["\\ud800"]', b'{"id":1,"id":2', self.call(2**53), arguments=arguments),
            [(None, -32600), (None, -32600), (None, -32700), (2**53, -32600)],
        )


if __name__ == "__main__":
    unittest.main()
