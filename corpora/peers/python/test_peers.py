"""Tests of the example toolhost and dispatcher: python3 -m unittest test_peers (in this folder, a few seconds).

Rules with a clock are tested in-process under a clock of our own; everything about bytes and processes on real
children. Waiting is on events with a deadline.
"""

import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True

import strict_json  # noqa: E402
import toolhost  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1024 * 1024
REQUEST_BYTES_MAX = 10 * MIB
DEADLINE_S = 30
EMPTY_DELTA = {"slots": {}, "delta": True}


def aid(role):
    return f"AID.PEERPROOF.{role}.v1"


def request(role, inputs=None, **members):
    if inputs is not None:
        members["input_json"] = json.dumps(inputs)
    return {"aid": aid(role), **members}


def artifact(content):
    return {"type": "t", "provenance": "p", "content_json": content, "size_bytes": len(content.encode())}


def padded(members, size):
    """A request of exactly `size` bytes."""
    empty = len(json.dumps({**members, "pad": ""}))
    return json.dumps({**members, "pad": "x" * (size - empty)}).encode()


class StrictJson(unittest.TestCase):
    def test_refuses_what_is_not_strict_json(self):
        for text in (
            "", "NaN", "[Infinity]", "-Infinity", "01", "[01]", "1.", ".5", "+1", "-", "tru", "'a'", "{'a':1}",
            '{"a":1,}', "[1,]", '"\t"', '"\\x"', '"\\u00g0"', '{"a":1,"a":2}', '"\\ud800"', '"\\udc00\\ud800"', "1e400",
            "{} x", "/**/1", "\u06631", "\ufeff{}", "\x0c1", "9" * 5000, "[" * 100_000, '{"a":' * 100_000,
        ):  # fmt: skip
            with self.subTest(text[:20]), self.assertRaises(strict_json.MalformedJson):
                strict_json.loads(text)
        for data in (b'"\xff"', b'"\xed\xa0\x80"', b'"\xc0\x80"', b'"\x00"'):
            with self.subTest(data), self.assertRaises(strict_json.MalformedJson):
                strict_json.loads(data)

    def test_accepts_the_near_misses(self):
        for text, value in (
            ("0", 0), (" [1]\r\n", [1]), ("1.0", 1), ("1e0", 1), ("9007199254740991", 2**53 - 1), ("0.5", 0.5),
            ('"\\u0000"', "\0"), ('"\\ud83d\\ude00"', "😀"), ('"\\\\ud800"', "\\ud800"), ('{"a":{"a":1}}', {"a": {"a": 1}}),
        ):  # fmt: skip
            with self.subTest(text):
                self.assertEqual(strict_json.loads(text), value)
        self.assertIsNotNone(strict_json.loads("[" * 64 + "]" * 64))


class Serve(unittest.TestCase):
    """Serve mode in-process, with a clock that the test moves."""

    def setUp(self):
        self.now_ms = 0
        self.new_host()

    def new_host(self, lease_enforced=False):
        tools = toolhost.conformance_tools(toolhost.AllowedHosts(""))
        self.host = toolhost.ServeHost(tools, lease_enforced, lambda: self.now_ms)

    def ask(self, message):
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        reply = self.host.answer(data)
        self.assertTrue(reply.endswith(b"\n") and reply.count(b"\n") == 1 and len(reply) <= MIB)
        reply = strict_json.loads(reply)
        if "token_id" not in reply:
            self.assertEqual(reply["ok"], reply.get("status") == "OK")
            self.assertEqual(reply["ok"], reply["error"] == "")
        return reply

    def output(self, message):
        reply = self.ask(message)
        self.assertTrue(reply["ok"], reply)
        return json.loads(reply["output_json"])

    def refused(self, message):
        reply = self.ask(message)
        self.assertFalse(reply["ok"], message)
        self.assertNotIn("status", reply)
        return reply

    def count(self, **members):
        return self.output(request("COUNTER", **members))["count"]

    def test_success_has_every_member(self):
        reply = self.ask(request("ECHO", {"a": [1, "é"]}, unknown=1))
        self.assertEqual(set(reply), {"ok", "status", "output_json", "error", "ds_state"})
        self.assertEqual(json.loads(reply["output_json"]), {"a": [1, "é"]})
        self.assertEqual(reply["ds_state"], EMPTY_DELTA)

    def test_refuses_malformed_requests_and_runs_nothing(self):
        good = request("COUNTER")
        for bad in (
            b"[", b"[]", b"1", b"null", b'"x"', b"\xff", b"{} {}", b"\xef\xbb\xbf{}", {}, {"aid": ""}, {"aid": 1},
            {"aid": None}, {"aid": "AID.UNKNOWN"}, {"aid": aid("COUNTER") + "\0"}, {"input_json": "{}"},
            *({**good, "input_json": text} for text in ("", "[]", "1", "null", "{", "{} x", None, {}, 5)),
            {**good, "inputs": {}}, {**good, "ds_state": []}, {**good, "ds_state": None},
            {**good, "idempotency_key": 1}, {**good, "_lease_token": 1},
        ):  # fmt: skip
            with self.subTest(bad):
                self.refused(bad)
        self.assertIsNone(self.host.answer(b" \t\r"))
        self.assertEqual(self.count(), 1)

    def test_tool_failures_do_not_end_the_session(self):
        for role, inputs, error in (
            ("FAIL", {"message": "no such thing"}, "no such thing"),
            ("FAIL", {"message": ""}, "the tool failed"),
            ("CRASH", {}, "RuntimeError: the crash tool throws"),
        ):
            reply = self.ask(request(role, inputs))
            self.assertEqual((reply["status"], reply["error"]), ("TOOL_ERROR", error))
        for role, inputs in (("BLOB", {"bytes": 2 * MIB}), ("BLOB", {"bytes": 10**15}), ("BLOB", {"bytes": True}),
                             ("FAIL", {"message": "m" * 2 * MIB}), ("SLEEP", {"ms": 10**30}), ("GET", {"slot": 8}),
                             ("ECHO", {"a": "\0" * 500_000})):  # fmt: skip
            self.assertEqual(self.ask(request(role, inputs))["status"], "TOOL_ERROR")
        self.assertEqual(len(self.output(request("BLOB", {"bytes": 1_000_000}))["data"]), 1_000_000)
        self.assertEqual(self.output(request("SLEEP", {"ms": 1.0})), {"slept_ms": 1})

    def test_key_answers_the_first_result_for_sixty_seconds(self):
        self.assertEqual(self.count(idempotency_key="k"), 1)
        self.now_ms = 40_000
        reply = self.ask(request("COUNTER", idempotency_key="k", input_json=" { } "))
        self.assertIs(reply["idempotent_hit"], True)
        self.assertEqual((reply["output_json"], reply["ds_state"]), ('{"count":1}', EMPTY_DELTA))
        self.now_ms = 59_999
        self.assertEqual(self.count(idempotency_key="k"), 1)
        self.now_ms = 60_000  # does not slide
        reply = self.ask(request("COUNTER", idempotency_key="k"))
        self.assertEqual((reply["output_json"], reply.get("idempotent_hit")), ('{"count":2}', None))
        self.now_ms = 119_999
        self.assertEqual(self.count(idempotency_key="k"), 2)

    def test_key_belongs_to_its_request(self):
        self.assertEqual(self.count(idempotency_key="k"), 1)
        self.assertEqual(self.output(request("ECHO", {"a": 1}, idempotency_key="k")), {"a": 1})
        self.refused(request("COUNTER", {"a": 1}, idempotency_key="k"))
        self.assertEqual([self.count(idempotency_key=key) for key in ("", "", "k\0", "k")], [2, 3, 4, 1])

    def test_host_errors_are_not_cached(self):
        self.refused({"aid": aid("COUNTER"), "input_json": "[", "idempotency_key": "k"})
        self.assertEqual(self.count(idempotency_key="k"), 1)

    def test_holds_1024_keys_and_then_drops_the_oldest(self):
        for number in range(1024):
            self.count(idempotency_key=f"k{number}")
        self.assertEqual([self.count(idempotency_key=f"k{number}") for number in (0, 1023)], [1, 1024])
        self.count(idempotency_key="new")
        self.assertEqual([self.count(idempotency_key=key) for key in ("new", "k1", "k0")], [1025, 2, 1026])

    def test_hit_fits_where_the_first_reply_fits(self):
        # The largest result, found by bisection, with a key.
        low, high = 0, MIB
        while high - low > 1:
            size = (low + high) // 2
            reply = self.ask(request("BLOB", {"bytes": size}, idempotency_key=f"k{size}"))
            low, high = (size, high) if reply["ok"] else (low, size)
        self.assertIs(self.ask(request("BLOB", {"bytes": low}, idempotency_key=f"k{low}"))["idempotent_hit"], True)

    def test_state_as_full_and_as_deltas(self):
        a, b = artifact('"ä"'), artifact("not json")
        get = lambda slot, **members: self.output(request("GET", {"slot": slot}, **members))["artifact"]  # noqa: E731
        self.assertEqual(get(0, ds_state={"slots": {"0": {**a, "unknown": 1}}}), a)
        self.assertEqual(get(0, ds_state={"delta": True, "slots": {"1": b}}), a)
        self.assertEqual(get(1), b)
        self.assertIsNone(get(0, ds_state={"delta": True, "removed_slots": [0.0]}))
        self.assertEqual(get(1), b)
        self.assertIsNone(get(1, ds_state={}))
        reply = self.ask(request("PUT", {"slot": 7, "artifact": a}))
        self.assertEqual(reply["ds_state"], {"slots": {"7": a}, "delta": True})
        self.assertEqual(get(7), a)
        reply = self.ask(request("REMOVE", {"slot": 7}))
        self.assertEqual(reply["ds_state"], {**EMPTY_DELTA, "removed_slots": [7]})
        self.assertIsNone(get(7))

    def test_refused_state_changes_nothing(self):
        a = artifact("{}")
        self.ask(request("PUT", {"slot": 1, "artifact": a}))
        for state in (
            {"slots": {"8": a}}, {"slots": {"01": a}}, {"slots": {"-1": a}}, {"slots": []}, {"slots": {"0": None}},
            {"slots": {"0": {**a, "size_bytes": 3}}}, {"slots": {"0": {**a, "size_bytes": "2"}}},
            {"slots": {"0": {**a, "content_json": {}}}}, {"slots": {"0": {"type": "t"}}}, {"delta": 1},
            {"delta": True, "removed_slots": [8]}, {"delta": True, "removed_slots": ["1"]},
            {"delta": True, "removed_slots": [True]}, {"delta": True, "slots": {"1": a}, "removed_slots": [1]},
            {"removed_slots": [1]},
        ):  # fmt: skip
            with self.subTest(state):
                self.refused(request("COUNTER", ds_state=state))
        self.refused({"aid": "AID.UNKNOWN", "ds_state": {}})
        self.assertEqual(self.output(request("GET", {"slot": 1})), {"artifact": a})
        self.assertEqual(self.count(), 1)

    def test_tool_error_keeps_the_state_of_the_request(self):
        a = artifact("{}")
        self.assertFalse(self.ask(request("FAIL", {}, ds_state={"slots": {"1": a}}))["ok"])
        self.assertEqual(self.output(request("GET", {"slot": 1})), {"artifact": a})

    def issue(self, role="TIER2", tier=2, **members):
        return self.ask({"aid": "_lease.issue", "tool_aid": aid(role), "tier": tier, **members})["token_id"]

    def test_lease_is_needed_from_tier_one_on(self):
        self.assertEqual(self.output(request("TIER3")), {"count": 1})  # not enforced
        self.new_host(lease_enforced=True)
        self.assertEqual(self.count(), 1)
        reply = self.refused(request("TIER2"))
        self.assertEqual(reply, {"ok": False, "error": "lease_required", "tier": 2, "aid": aid("TIER2")})
        for token in ("", "tok_unknown"):
            self.assertEqual(self.refused(request("TIER2", _lease_token=token))["error"], "lease_rejected")

    def test_token_works_once_for_its_tool_and_tier(self):
        self.new_host(lease_enforced=True)
        token = self.issue()
        for bad in (request("TIER1", _lease_token=token), request("TIER2", _lease_token=token, ds_state=1)):
            self.refused(bad)  # and stays valid
        self.assertEqual(self.output(request("TIER2", _lease_token=token)), {"count": 1})
        reply = self.refused(request("TIER2", _lease_token=token))
        self.assertEqual((reply["error"], bool(reply["reason"])), ("lease_rejected", True))
        self.assertNotIn(token, json.dumps(reply))
        self.refused(request("TIER2", _lease_token=self.issue(tier=1)))
        self.assertEqual(self.output(request("TIER2", _lease_token=self.issue(tier=3))), {"count": 2})

    def test_token_expires(self):
        self.new_host(lease_enforced=True)
        for members, ttl_ms in (({}, 10_000), ({"ttl_ms": 1}, 1_000), ({"ttl_ms": 10**9}, 300_000)):
            token, late = self.issue(**members), self.issue(**members)
            self.now_ms += ttl_ms - 1
            self.assertTrue(self.ask(request("TIER2", _lease_token=token))["ok"])
            self.now_ms += 1
            self.assertIn("expired", self.refused(request("TIER2", _lease_token=late))["reason"])

    def test_issue_refuses_wrong_types(self):
        good = {"aid": "_lease.issue", "tool_aid": "a", "tier": 1}
        self.assertTrue(self.ask(good)["token_id"])
        for members in ({"tool_aid": 1}, {"tool_aid": ""}, {"tier": "1"}, {"tier": True}, {"tier": -1}, {"ttl_ms": "1"}):
            self.refused({**good, **members})

    def test_hit_does_not_bypass_the_lease(self):
        self.new_host(lease_enforced=True)
        self.ask(request("TIER2", _lease_token=self.issue(), idempotency_key="k"))
        self.assertEqual(self.refused(request("TIER2", idempotency_key="k"))["error"], "lease_required")
        hit = self.ask(request("TIER2", _lease_token=self.issue(), idempotency_key="k"))
        self.assertEqual((hit["output_json"], hit["idempotent_hit"]), ('{"count":1}', True))


def run_toolhost(arguments, stdin, **env):
    done = subprocess.run(
        [sys.executable, str(HERE / "toolhost.py"), *arguments],
        input=stdin,
        capture_output=True,
        timeout=DEADLINE_S,
        env={**os.environ, **env},
    )
    return done.returncode, [strict_json.loads(line) for line in done.stdout.splitlines()], done.stderr


class ToolhostProcess(unittest.TestCase):
    def serve(self, *messages, **env):
        lines = [m if isinstance(m, bytes) else json.dumps(m).encode() for m in messages]
        status, replies, stderr = run_toolhost(["--serve", "plugin"], b"\n".join(lines), **env)
        self.assertEqual(status, 0, stderr)
        return replies

    def run_once(self, role, stdin):
        status, replies, stderr = run_toolhost(["--run", "plugin", aid(role)], stdin)
        self.assertEqual((status, len(replies)), (0, 1), stderr)
        return replies[0]

    def test_run_mode(self):
        a = artifact("{}")
        stdin = json.dumps({"input_json": json.dumps({"slot": 0, "artifact": a}), "ds_state": {"slots": {"1": a}}})
        reply = self.run_once("PUT", stdin.encode() + b" \n")
        self.assertEqual((reply["ok"], reply["ds_state"]), (True, {"slots": {"0": a, "1": a}}))
        self.assertTrue(self.run_once("ECHO", b'{"aid":1,"idempotency_key":1}')["ok"])
        self.assertFalse(self.run_once("ECHO", b"")["ok"])
        self.assertFalse(self.run_once("ECHO", b"{}{}")["ok"])
        self.assertFalse(self.run_once("UNKNOWN", b"{}")["ok"])
        self.assertTrue(self.run_once("COUNTER", padded({}, REQUEST_BYTES_MAX))["ok"])
        self.assertFalse(self.run_once("COUNTER", padded({}, REQUEST_BYTES_MAX + 1))["ok"])

    def test_lines_at_and_over_the_limit(self):
        count = request("COUNTER")
        lines = [padded(count, REQUEST_BYTES_MAX), padded(count, REQUEST_BYTES_MAX + 1), b"x" * 3 * REQUEST_BYTES_MAX]
        replies = self.serve(count, *lines, count)
        self.assertEqual([reply["ok"] for reply in replies], [True, True, False, False, True])
        self.assertEqual(replies[-1]["output_json"], '{"count":3}')

    def test_last_line_without_lf_and_crlf(self):
        replies = self.serve(json.dumps(request("ECHO")).encode() + b"\r", b"", request("COUNTER"))
        self.assertEqual([reply["ok"] for reply in replies], [True, True])
        self.assertEqual([reply["ok"] for reply in self.serve(request("ECHO"), b'{"aid":"x')], [True, False])

    def test_noise_stays_out_of_the_protocol(self):
        replies = self.serve(request("NOISE", {"stdout": '{"ok":1}\n', "stderr": "e"}), request("COUNTER"))
        self.assertEqual([reply["ok"] for reply in replies], [True, True])

    def test_lease_variable(self):
        self.assertTrue(self.serve(request("TIER1"), MACHINA_LEASE_ENFORCE="0")[0]["ok"])
        self.assertEqual(self.serve(request("TIER1"), MACHINA_LEASE_ENFORCE="1")[0]["error"], "lease_required")

    def test_replies_at_once_and_ends_on_sigterm(self):
        with subprocess.Popen(
            [sys.executable, str(HERE / "toolhost.py"), "--serve", "plugin"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            watchdog = threading.Timer(DEADLINE_S, process.kill)
            watchdog.start()
            for byte in json.dumps(request("ECHO", {"a": "é"})).encode() + b"\n":
                process.stdin.write(bytes([byte]))
                process.stdin.flush()
            self.assertTrue(strict_json.loads(process.stdout.readline())["ok"])
            process.terminate()
            self.assertEqual(process.wait(DEADLINE_S), -signal.SIGTERM)
            watchdog.cancel()


class HttpGet(unittest.TestCase):
    def setUp(self):
        self.requests = requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                requests.append(self.path)
                self.send_response(302 if self.path.startswith("/to?") else 200)
                if self.path.startswith("/to?"):
                    self.send_header("Location", self.path[len("/to?") :])
                self.end_headers()
                self.wfile.write("hällo".encode())

            def log_message(self, *_):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.port = self.server.server_port

    def get(self, url, rule):
        return toolhost.http_get(url.replace("PORT", str(self.port)), toolhost.AllowedHosts(rule))

    def test_fetches_listed_hosts(self):
        expected = {"status": 200, "body": "hällo"}
        for rule in ("", "*", "127.0.0.1", " example.com , 127.0.0.1"):
            self.assertEqual(self.get("http://127.0.0.1:PORT/a?b#c", rule), expected)
        self.assertEqual(self.get("http://LOCALHOST.:PORT?b", "LocalHost"), expected)
        self.assertEqual(self.get("http://127.0.0.1:PORT/to?/next", "127.0.0.1"), expected)
        self.assertEqual(self.requests, ["/a?b"] * 4 + ["/?b", "/to?/next", "/next"])

    def test_never_contacts_unlisted_hosts(self):
        for url, rule in (
            ("http://127.0.0.1:PORT/", "example.com"), ("http://127.0.0.1:PORT/", ","), ("http://127.0.0.1:PORT/", " "),
            ("http://example.com@127.0.0.1:PORT/", "example.com"), ("http://127.0.0.1:PORT/@example.com", "example.com"),
            ("http://127.0.0.1:PORT#@example.com", "example.com"), ("http://127.0.0.1:PORT\\@example.com/", "example.com"),
            ("http://127.0.0.1:PORT/", "*.0.0.1"), ("http://127.1:PORT/", "127.0.0.1"), ("http://2130706433:PORT/", "x"),
            ("http://[::ffff:127.0.0.1]:PORT/", "127.0.0.1"), ("http://127.0.0.1:PORT/\r\nX: y", ""),
            ("file:///etc/passwd", ""), ("//127.0.0.1:PORT/", ""), ("http:127.0.0.1:PORT/", ""),
        ):  # fmt: skip
            with self.subTest(url=url, rule=rule), self.assertRaises(toolhost.ToolError):
                self.get(url, rule)
        self.assertEqual(self.requests, [])

    def test_redirect_to_an_unlisted_host_is_not_followed(self):
        with self.assertRaises(toolhost.ToolError):
            self.get("http://127.0.0.1:PORT/to?http://localhost:PORT/", "127.0.0.1")
        self.assertEqual(len(self.requests), 1)

    def test_wildcard_means_sub_domains_only(self):
        hosts = toolhost.AllowedHosts("*.Example.com,[::1]")
        for host, allowed in (
            ("a.example.com", True), ("a.b.example.com", True), ("example.com", False), ("badexample.com", False),
            ("example.com.evil.org", False), ("::1", True), ("::2", False),
        ):  # fmt: skip
            self.assertEqual(hosts.allow(toolhost.canonical_host(host)), allowed, host)


REPLY = {"ok": True, "status": "OK", "output_json": '{"a":1}', "error": "", "ds_state": {"slots": {}}}


class Dispatcher(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def peer(self, script):
        """An executable sh script that stands for a toolhost."""
        path = self.folder / "peer"
        path.write_text("#!/bin/sh\n" + script + "\n")
        path.chmod(0o755)
        return path

    def dispatch(self, peer, call=None, timeout_s="20"):
        call = {"aid": "AID.X", "inputs": {"b": 2}} if call is None else call
        done = subprocess.run(
            [sys.executable, str(HERE / "dispatcher.py"), str(peer)],
            input=json.dumps(call).encode(),
            capture_output=True,
            timeout=DEADLINE_S,
            env={**os.environ, "MACHINA_TOOLHOST_TIMEOUT": timeout_s},
        )
        self.assertEqual(done.stderr, b"")
        result = strict_json.loads(done.stdout)
        self.assertEqual(done.returncode, 1 if "detail" in result else 0)
        return result

    def answering(self, reply, rest=""):
        text = reply if isinstance(reply, str) else json.dumps(reply)
        (self.folder / "reply").write_text(text)
        return self.peer(f'cat > "{self.folder}/request"; cat "{self.folder}/reply"; {rest}')

    def failure(self, peer, **options):
        result = self.dispatch(peer, **options)
        self.assertEqual((set(result), result["error"]), ({"error", "aid", "type", "detail"}, True))
        self.assertTrue(isinstance(result["detail"], str) and result["detail"])
        return result["type"]

    def assert_gone(self, pid):
        """A killed process is a zombie at most (of whoever adopted it)."""
        try:
            state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        self.assertIn(state, "ZX")

    def test_success_and_the_request_it_sends(self):
        self.assertEqual(self.dispatch(self.answering(REPLY)), {"a": 1})
        sent = strict_json.loads((self.folder / "request").read_bytes())
        self.assertEqual((sent["aid"], json.loads(sent["input_json"])), ("AID.X", {"b": 2}))

    def test_works_with_the_example_toolhost(self):
        call = {"aid": aid("ECHO"), "inputs": {"a": "é"}}
        self.assertEqual(self.dispatch(HERE / "toolhost.py", call=call), {"a": "é"})
        result = self.dispatch(HERE / "toolhost.py", call={"aid": aid("FAIL"), "inputs": {"message": "why"}})
        self.assertEqual((result["type"], result["detail"], result["aid"]), ("exception", "why", aid("FAIL")))

    def test_bad_replies_are_never_a_success(self):
        for reply in (
            "", "x", "[]", json.dumps(REPLY)[:-1], json.dumps(REPLY) + "{}", {**REPLY, "ok": 1}, {**REPLY, "ok": "true"},
            {**REPLY, "status": "TOOL_ERROR"}, {**REPLY, "error": "e"}, {**REPLY, "output_json": "{"},
            {**REPLY, "output_json": {}}, {**REPLY, "output_json": None}, {"ok": True},
        ):  # fmt: skip
            with self.subTest(reply):
                self.assertEqual(self.failure(self.answering(reply)), "parse_error")
        self.assertEqual(self.failure(self.answering({**REPLY, "ok": False})), "exception")
        self.assertEqual(self.failure(self.answering({"ok": False, "error": "e"})), "exception")

    def test_ways_to_end(self):
        self.assertEqual(self.failure(self.answering(REPLY, "exit 3")), "crash")
        self.assertEqual(self.failure(self.answering(REPLY, "kill -9 $$")), "crash")
        self.assertEqual(self.failure(self.folder / "missing"), "not_found")
        self.assertEqual(self.failure(self.folder), "exception")
        self.assertEqual(self.failure(self.answering(REPLY), call=[]), "exception")
        self.assertEqual(self.failure(self.answering(REPLY), call={"aid": "a", "inputs": 1}), "exception")

    def test_stdout_is_capped(self):
        padding = MIB - len(json.dumps({**REPLY, "pad": ""}))
        self.assertEqual(self.dispatch(self.answering({**REPLY, "pad": "x" * padding})), {"a": 1})
        self.assertEqual(self.failure(self.answering({**REPLY, "pad": "x" * (padding + 1)})), "parse_error")
        self.assertEqual(self.failure(self.peer("exec yes")), "parse_error")

    def test_stderr_and_unread_stdin_never_block(self):
        flood = "head -c 3000000 /dev/zero >&2"
        self.assertEqual(self.dispatch(self.answering(REPLY, flood)), {"a": 1})
        (self.folder / "reply").write_text(json.dumps(REPLY))
        big = {"aid": "AID.X", "inputs": {"b": "x" * 3_000_000}}
        self.assertEqual(self.dispatch(self.peer(f'cat "{self.folder}/reply"'), call=big), {"a": 1})

    def test_timeout_kills_the_whole_tree(self):
        pids = self.folder / "pids"
        escaped = f"setsid sh -c 'echo $$ >> {pids}; exec sleep 60' & "
        script = f"trap '' TERM; echo $$ > {pids}; sleep 60 & echo $! >> {pids}; ({escaped}) ; wait; sleep 60"
        # The timeout leaves time for the script to write its three lines.
        self.assertEqual(self.failure(self.peer(script), timeout_s="3"), "timeout")
        numbers = pids.read_text().split()
        self.assertEqual(len(numbers), 3)
        for pid in numbers:
            self.assert_gone(pid)

    def test_child_that_holds_the_pipes_is_not_waited_for(self):
        pid = self.folder / "pid"
        peer = self.answering(REPLY, f"setsid sleep 60 & echo $! > {pid}")
        self.assertEqual(self.dispatch(peer, timeout_s="25"), {"a": 1})  # a wait for EOF would be a timeout
        self.assert_gone(pid.read_text().strip())

    def test_sigterm_takes_the_toolhost_along(self):
        fifo = self.folder / "pid"
        os.mkfifo(fifo)
        with subprocess.Popen(
            [sys.executable, str(HERE / "dispatcher.py"), str(self.peer(f"echo $$ > {fifo}; exec sleep 60"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            process.stdin.write(b'{"aid":"a"}')
            process.stdin.close()
            pid = fifo.read_text().strip()  # waits for the toolhost
            process.terminate()
            self.assertEqual(process.wait(DEADLINE_S), 128 + signal.SIGTERM)
            self.assert_gone(pid)


if __name__ == "__main__":
    unittest.main()
