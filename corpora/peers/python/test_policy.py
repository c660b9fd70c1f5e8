"""Tests of the example drivers and of the example selector: python3 -m unittest test_policy (in this folder, a minute).

The breaker is tested in-process under a clock of our own; everything about bytes and processes on real children.
Needs sh and awk for the driver in sh, and skips that in JavaScript where node is missing. `SELECTOR` may be another
selector: the tests of its process rely on the contract alone.
"""

import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True

import policy_block  # noqa: E402
import policy_launch  # noqa: E402
import policy_select  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SELECTOR = [sys.executable, str(HERE / "policy_select.py")]
DRIVERS = {
    "python": [sys.executable, str(HERE / "policy_driver.py")],
    "sh": ["sh", str(HERE.parent / "sh" / "policy_driver.sh")],
    "node": ["node", str(HERE.parent / "node" / "policy_driver.js")],
}
if shutil.which("node") is None:
    print("SKIPPED the driver in JavaScript: node is not on the PATH; nothing is known about it", file=sys.stderr)
    del DRIVERS["node"]
DEADLINE_S = 60
REQUEST_BYTES_MAX = 10 * 1024 * 1024
# Interpreters by their own files: what a PATH of version managers finds may be a script itself.
SEARCH_PATH = os.pathsep.join([os.path.dirname(os.path.realpath(sys.executable)), "/usr/local/bin", "/usr/bin", "/bin"])


def entry(number, **members):
    return {"sid": f"SID{number:04}", "aid": "AID.TEST.v1", "name": "a tool", "tags": [], **members}


def request(inputs=None, menu=None, **members):
    return {
        "control_mode": "POLICY_ONLY",
        "goal_digest": "goal|menu|FLAGS:",
        "state_digest": "state",
        "inputs": {} if inputs is None else inputs,
        "menu": [entry(1), entry(7), entry(2)] if menu is None else menu,
        **members,
    }


# What a driver prints → the patch that is taken with SID0007, or None for none.
VALID_PICKS = {
    b"<PICK><SID0007><END>": None,
    b" \t\r\n<PICK><SID0007><END>\r\n\t ": None,
    b"<PICK><SID0007><INP>{}</INP><END>": {},
    b'<PICK><SID0007><INP> {"a" : [1, null]}\n</INP><END>\n': {"a": [1, None]},
    b'<PICK><SID0007><INP>{"a":"</INP><END>"}</INP><END>': {"a": "</INP><END>"},
    b'<PICK><SID0007><INP>{"a":"\\"</INP>","b":"\\\\"}</INP><END>': {"a": '"</INP>', "b": "\\"},
    b'<PICK><SID0007><INP>{"a":"<PICK><SID0002><END>"}</INP><END>': {"a": "<PICK><SID0002><END>"},
    b'<PICK><SID0007><INP>{"</INP>":"<INP64>e30=</INP64>"}</INP><END>': {"</INP>": "<INP64>e30=</INP64>"},
    b'<PICK><SID0007><INP>{"sid":"SID0002","__proto__":1,"":0}</INP><END>': {"sid": "SID0002", "__proto__": 1, "": 0},
    b"<PICK><SID0007><INP64>e30=</INP64><END>": {},
    b"<PICK><SID0007><INP64>eyJhIjoiw6kifQ==</INP64><END>": {"a": "\u00e9"},
    '<PICK><SID0007><INP>{"\u00e9":"\U0001f600"}</INP><END>'.encode(): {"\u00e9": "\U0001f600"},
    b'<PICK><SID0007><INP>{"n":9007199254740991}</INP><END>': {"n": 9007199254740991},
    b'<PICK><SID0007><INP>{"a":' + b"[" * 63 + b"]" * 63 + b"}</INP><END>": {"a": json.loads("[" * 63 + "]" * 63)},
}
INVALID_BLOCKS = [
    b"", b" \n", b"\0", b"hello", b"{}", b"<PICK><END>", b"<PICK><SID0007>", b"<SID0007><END>",
    b"<PICK>SID0007<END>", b"<pick><SID0007><END>", b"<PICK><sid0007><END>", b"<PICK><SID0007><end>", b"<Noop><END>",
    b"<NOOP>", b"NOOP", b"<PICK><SID007><END>", b"<PICK><SID00007><END>", b"<PICK><SID 007><END>",
    b"<PICK><SID+007><END>", "<PICK><SID000\u0667><END>".encode(),
    "<PICK><SID\uff10\uff10\uff10\uff17><END>".encode(), b"<PICK><SID0009><END>", b"x<PICK><SID0007><END>",
    b"<PICK><SID0007><END>x", b"<PICK> <SID0007><END>", b"<PICK><SID0007>\n<END>", b"```\n<PICK><SID0007><END>\n```",
    b"\xef\xbb\xbf<PICK><SID0007><END>", b"<PICK><SID0007><END>\0", b"\xc2\xa0<PICK><SID0007><END>",
    b"<PICK><SID0007><END>\xff", b"< PICK><SID0007><END>", b"<PICK><SID0007></END>",
    b"<PICK><SID0007><END><PICK><SID0007><END>", b"<PICK><SID0007><END>\n<PICK><SID0007><END>",
    b"<NOOP><END><NOOP><END>", b"<PICK><PICK><SID0007><END>", b"<PICK><SID0007><PICK><SID0007><END>",
    b"<PICK><SID0007><SID0007><END>", b"<PICK><SID0007><END><END>", b"<ASK_SUP><SID0007><END>",
    b"<NOOP><INP>{}</INP><END>", b"<ASK_SUP><INP64>e30=</INP64><END>", b"<ASK SUP><END>",
    b"<ASK_SUP><END><NOOP><END>", b"<PICK><SID0007><INP></INP><END>", b"<PICK><SID0007><INP>{}<END>",
    b"<PICK><SID0007>{}</INP><END>", b"<PICK><SID0007><INP>[]</INP><END>", b"<PICK><SID0007><INP>null</INP><END>",
    b'<PICK><SID0007><INP>"{}"</INP><END>', b"<PICK><SID0007><INP>{'a':1}</INP><END>",
    b'<PICK><SID0007><INP>{"a":1,}</INP><END>', b"<PICK><SID0007><INP>{}{}</INP><END>",
    b"<PICK><SID0007><INP>{} x</INP><END>", b'<PICK><SID0007><INP>{"a":NaN}</INP><END>',
    b'<PICK><SID0007><INP>{"a":01}</INP><END>', b'<PICK><SID0007><INP>{"a":"\n"}</INP><END>',
    b'<PICK><SID0007><INP>{"a":"\xff"}</INP><END>', b"<PICK><SID0007><INP>/**/{}</INP><END>",
    b"<PICK><SID0007><INP>\xef\xbb\xbf{}</INP><END>", b"<PICK><SID0007><INP>\x0c{}</INP><END>",
    b"<PICK><SID0007><INP>{}</INP><INP>{}</INP><END>", b"<PICK><SID0007><INP>{}</INP><INP64>e30=</INP64><END>",
    b"<PICK><SID0007><INP64>e30=</INP64><INP>{}</INP><END>", b"<PICK><SID0007><INP>{}</INP64><END>",
    b"<PICK><SID0007><inp>{}</inp><END>", b"<PICK><SID0007><INP>{}</INP>x<END>",
    b"<PICK><INP>{}</INP><SID0007><END>", b"<PICK><SID0007><END><INP>{}</INP>",
    b'<PICK><SID0007><INP>{"a":"</INP><END>', b'<PICK><SID0007><INP>{"a":1}</INP><END>"}</INP><END>',
    b"<PICK><SID0007><INP64></INP64><END>", b"<PICK><SID0007><INP64>{}</INP64><END>",
    b"<PICK><SID0007><INP64>e30=e30=</INP64><END>", b"<PICK><SID0007><INP64>e3*=</INP64><END>",
    b"<PICK><SID0007><INP64>W10=</INP64><END>", b"<PICK><SID0007><INP64>bnVsbA==</INP64><END>",
    b"<PICK><SID0007><INP64>/w==</INP64><END>", b"<PICK><SID0007><INP64>e30=</INP><END>",
    b"<PICK><SID0007><INP64>e30=x</INP64><END>", b"<PICK><SID0007><INP64>=</INP64><END>",
    b"<PICK><SID0007><INP64>e</INP64><END>",
]  # fmt: skip


class Blocks(unittest.TestCase):
    def test_reads_the_five_forms(self):
        for text, kind in ((b"<NOOP><END>", "NOOP"), (b"\n<ASK_SUP><END>\n", "ASK_SUP")):
            self.assertEqual(policy_block.parse_block(text).kind, kind)
        for text, patch in VALID_PICKS.items():
            with self.subTest(text):
                block = policy_block.parse_block(text)
                self.assertEqual((block.kind, block.sid, block.patch), ("PICK", "SID0007", patch))
                if patch is not None:
                    self.assertEqual(json.loads(block.patch_text), patch)

    def test_refuses_near_misses(self):
        for text in INVALID_BLOCKS:
            if text != b"<PICK><SID0009><END>":  # a block, of another menu
                with self.subTest(text), self.assertRaises(policy_block.InvalidBlock):
                    policy_block.parse_block(text)

    def test_chooses_refusal_where_the_contract_leaves_it_open(self):
        for patch in (b'{"a":1,"a":2}', b'{"a":"\\ud800"}', b'{"a":1e400}', b'{"a":' + b"[" * 64 + b"]" * 64 + b"}"):
            for text in (b"<INP>" + patch + b"</INP>", b"<INP64>" + base64.b64encode(patch) + b"</INP64>"):
                with self.subTest(text), self.assertRaises(policy_block.InvalidBlock):
                    policy_block.parse_block(b"<PICK><SID0007>" + text + b"<END>")
        for sloppy in (b"e30", b"e31=", b"e3 0=", b"e30=\n", b"eyJhIjoi_-8ifQ=="):
            with self.subTest(sloppy), self.assertRaises(policy_block.InvalidBlock):
                policy_block.parse_block(b"<PICK><SID0007><INP64>" + sloppy + b"</INP64><END>")
        for end in (b"\x0b", b"\x0c"):
            with self.assertRaises(policy_block.InvalidBlock):
                policy_block.parse_block(b"<NOOP><END>" + end)


class Commands(unittest.TestCase):
    def test_splits_as_a_shell_does_and_expands_nothing(self):
        for text, words in (
            ("a b", ["a", "b"]),
            (" \t a\n b ", ["a", "b"]),
            ("'a b'c \"d 'e'\" ''", ["a bc", "d 'e'", ""]),
            (r'a\ b "\$x\"\\\n" c\\', ["a b", '$x"\\\\n', "c\\"]),
            ("$HOME `id` ~ * ; | & < > ( ) #x", ["$HOME", "`id`", "~", "*", ";", "|", "&", "<", ">", "(", ")", "#x"]),
            ('a\\\nb "c\\\nd"', ["ab", "cd"]),
            ("a \\\n b", ["a", "b"]),
        ):
            with self.subTest(text):
                self.assertEqual(policy_launch.split_command(text), words)
        for text in ("'a", '"a', '"a\\', "a\\"):
            with self.subTest(text), self.assertRaises(policy_launch.Disallowed):
                policy_launch.split_command(text)

    def test_numbers_are_digits_or_the_default(self):
        for text, number in (
            ("7", 7),
            ("0", 0),
            ("", 5),
            ("-1", 5),
            ("1.5", 5),
            ("1e3", 5),
            ("\u0661", 5),
            ("9" * 12, 5),
        ):
            self.assertEqual(policy_select.number_of({"N": text}, "N", 5), number)
        self.assertEqual(policy_select.number_of({"N": "0"}, "N", 5, least=1), 5)

    def test_time_allowed_comes_from_the_variable_or_the_profile(self):
        for environ, seconds in (
            ({}, 2.5),
            ({"MACHINA_PROFILE": "dev"}, 60),
            ({"MACHINA_PROFILE": "prod"}, 30),
            ({"MACHINA_PROFILE": "PROD"}, 2.5),
            ({"MACHINA_PROFILE": "prod", "MACHINA_POLICY_TIMEOUT_MS": "70"}, 0.07),
        ):
            self.assertEqual(policy_select.Config(environ).timeout_s, seconds)


class BreakerSteps(unittest.TestCase):
    """The selector in-process: the driver is a function, the clock a number."""

    def setUp(self):
        self.now = 0.0
        self.output = b""
        self.starts = 0
        environ = {"MACHINA_POLICY_CMD": "driver", "MACHINA_POLICY_ALLOW_UNSAFE": "1"}
        self.selector = policy_select.Selector(
            policy_select.Config(environ), clock=lambda: self.now, run=self.run_driver
        )

    def run_driver(self, _launch, _command, _payload_path, _timeout_s):
        self.starts += 1
        return self.output

    def step(self, output, mode="POLICY_ONLY"):
        """One request → (was the driver started, was it the fallback)."""
        self.output, before = output, self.starts
        selection = self.selector.select(json.dumps(request(control_mode=mode)).encode())
        return self.starts > before, selection["raw"].startswith("fallback")

    def test_opens_at_the_fifth_failure_for_half_a_minute(self):
        for _ in range(5):
            self.assertEqual(self.step(b"?"), (True, True))
        self.now = 29.9
        self.assertEqual(self.step(b"<NOOP><END>"), (False, True))
        self.now = 30.1
        self.assertEqual(self.step(b"<NOOP><END>"), (True, False))
        for _ in range(4):
            self.assertEqual(self.step(b"?"), (True, True))
        self.assertEqual(self.step(b"<NOOP><END>"), (True, False))

    def test_a_failure_after_the_cooldown_opens_at_once(self):
        for _ in range(5):
            self.step(b"?")
        self.now = 31
        self.assertEqual(self.step(b"?"), (True, True))
        self.now = 60.9
        self.assertEqual(self.step(b"?"), (False, True))
        self.now = 61.1
        self.assertEqual(self.step(b"?"), (True, True))

    def test_any_valid_block_resets_and_a_fallback_step_does_not(self):
        for block in (b"<NOOP><END>", b"<ASK_SUP><END>", b"<PICK><SID0007><END>"):
            for _ in range(4):
                self.step(b"?")
            self.assertEqual(self.step(block), (True, False))
        for _ in range(4):
            self.step(b"?")
        self.assertEqual(self.step(b"?", "FALLBACK_ONLY"), (False, True))
        self.selector.select(b"malformed")
        self.assertEqual(self.step(b"?"), (True, True))
        self.assertEqual(self.step(b"?"), (False, True))

    def test_no_cooldown_means_no_breaker(self):
        self.selector.breaker.cooldown_s = 0
        for _ in range(20):
            self.assertEqual(self.step(b"?"), (True, True))


class SelectorProcess(unittest.TestCase):
    """A live selector between our requests and drivers that we write. Relies on the contract alone."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="test-policy-")).resolve()
        self.addCleanup(shutil.rmtree, self.folder)
        self.root = self.folder / "policies"
        self.tmp = self.folder / "tmp"
        self.root.mkdir()
        self.tmp.mkdir()

    def driver(self, text, name="driver.sh"):
        """A script under the root, and the command that runs it. It records its start in a file of its own."""
        (self.root / name).write_text('echo >> "$0.starts"\n' + text)
        return f"sh policies/{name}"

    def starts(self, name="driver.sh"):
        try:
            return len((self.root / (name + ".starts")).read_bytes())
        except FileNotFoundError:
            return 0

    def printing(self, output):
        (self.root / "driver.sh.out").write_bytes(output)
        return self.driver('exec cat "$0.out"')

    def select_each(self, outputs):
        """One selector, whose driver prints one of the outputs after the other."""
        for number, output in enumerate(outputs, 1):
            (self.root / f"driver.sh.{number}").write_bytes(output)
        command = self.driver('exec cat "$0.$(($(wc -c < "$0.starts")))"')
        selections = self.select(command, *[request()] * len(outputs), policy_fail_threshold=1_000)
        self.assertEqual(self.starts(), len(outputs))
        return selections

    def environ(self, command, variables):
        environ = {"PATH": SEARCH_PATH, "TMPDIR": str(self.tmp), "HOME": str(self.folder)}
        environ["MACHINA_POLICY_TIMEOUT_MS"] = "20000"  # nothing is judged by how busy this machine is
        if command is not None:
            environ["MACHINA_POLICY_CMD"] = command
        for name, value in variables.items():
            environ["MACHINA_" + name.upper() if name.startswith("policy") else name] = str(value)
        return environ

    def start(self, command, **variables):
        process = subprocess.Popen(
            SELECTOR,
            cwd=self.folder,
            env=self.environ(command, variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(process.wait, DEADLINE_S)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        return process

    def select(self, command, *requests, **variables):
        """Runs the selector over the requests (objects, or lines as bytes) and returns its Selections."""
        lines = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in requests]
        process = self.start(command, **variables)
        stdout, _ = process.communicate(b"".join(line + b"\n" for line in lines), DEADLINE_S)
        self.assertEqual(process.returncode, 0)
        self.assert_nothing_is_left()
        selections = [json.loads(line) for line in stdout.split(b"\n")[:-1]]
        for selection in selections:
            self.assertIn(selection["kind"], ("PICK", "ASK_SUP", "NOOP", "INVALID"))
            self.assertEqual("sid" in selection, selection["kind"] == "PICK")
            self.assertTrue(selection["raw"])
        return selections

    def select_one(self, command, **variables):
        [selection] = self.select(command, request(), **variables)
        return selection

    def assert_nothing_is_left(self):
        self.assertEqual(os.listdir(self.tmp), [])
        for name in os.listdir("/proc"):
            try:
                where = os.readlink(f"/proc/{name}/cwd") if name.isdigit() else ""
            except OSError:
                continue
            self.assertFalse(where.startswith(str(self.folder)), f"process {name} is left")

    def assert_fallback(self, selection):
        self.assertEqual((selection["kind"], selection["sid"]), ("PICK", "SID0001"))
        self.assertFalse(selection.get("input_patch_json"))
        with self.assertRaises(policy_block.InvalidBlock):
            policy_block.parse_block(selection["raw"].encode())

    def assert_taken(self, selection, patch=None):
        self.assertEqual((selection["kind"], selection["sid"]), ("PICK", "SID0007"))
        text = selection.get("input_patch_json")
        self.assertEqual(json.loads(text) if text is not None else None, patch)

    def test_takes_every_form(self):
        for (output, patch), selection in zip(VALID_PICKS.items(), self.select_each(VALID_PICKS)):
            with self.subTest(output):
                self.assert_taken(selection, patch)
                self.assertIn(output.strip(b" \t\r\n").decode(), selection["raw"])
                if "inputs" in selection:
                    self.assertEqual(selection["inputs"], patch or {})
        for form in ("ASK_SUP", "NOOP"):
            self.assertEqual(self.select_one(self.printing(f"<{form}><END>\n".encode()))["kind"], form)

    def test_refuses_near_misses(self):
        for output, selection in zip(INVALID_BLOCKS, self.select_each(INVALID_BLOCKS)):
            with self.subTest(output):
                self.assert_fallback(selection)

    def test_merges_shallowly(self):
        command = self.printing(b'<PICK><SID0007><INP>{"a":null,"b":{"y":2}}</INP><END>')
        [selection] = self.select(command, request({"a": 1, "b": {"x": 1}, "c": [3]}))
        self.assertEqual(json.loads(selection["input_patch_json"]), {"a": None, "b": {"y": 2}})
        if "inputs" in selection:
            self.assertEqual(selection["inputs"], {"a": None, "b": {"y": 2}, "c": [3]})

    def test_contains_hostile_drivers(self):
        pick = "printf '<PICK><SID0007><END>'\n"
        for text in (
            "sleep 60\n" + pick,  # hangs before
            "printf '<PICK><SI'; sleep 60\n",  # amid
            pick + "sleep 60",  # and after its output
            "trap '' TERM INT HUP; " + pick + "while :; do sleep 60; done",
            pick + "exec >&-; exec sleep 60",  # closes stdout and lives on
            pick + "exit 3",
            pick + "kill -9 $$",
            pick + "kill -TERM $$",
            pick.replace("\n", " >&2\n"),  # a block on stderr
            "exec yes",  # an endless flood
            pick + "exec head -c 70000 /dev/zero | tr '\\000' '\\n'",
            "while :; do printf x; sleep 0.1; done",  # dribbles past the timeout
            pick + "setsid sleep 60 & sleep 60",
            "(setsid sh -c 'sleep 60 & sleep 60' &); sleep 60",
            # Never the same process for long, in a group of its own.
            "(setsid sh -c 'f() { (f) & exit; }; f' &); sleep 60",
        ):
            with self.subTest(text):
                began = time.monotonic()
                selections = self.select(self.driver(text), request(), request(), policy_timeout_ms=700)
                for selection in selections:
                    self.assert_fallback(selection)
                self.assertLess(time.monotonic() - began, DEADLINE_S / 2)
                self.assertEqual(self.starts(), 2)
                (self.root / "driver.sh.starts").unlink()

    def test_does_not_wait_for_children_that_hold_the_pipe(self):
        for text in ("sleep 60 &\n", "setsid sleep 60 &\n", "(setsid setsid sleep 60 &)\n", "setsid yes >&2 &\n"):
            with self.subTest(text):
                selection = self.select_one(self.driver(text + "printf '<PICK><SID0007><END>'"))
                self.assertIn(selection["sid"], ("SID0007", "SID0001"))

    def test_stderr_and_stdin_are_no_channels(self):
        flood = "head -c 300000 /dev/zero >&2; printf '<PICK><SID0007><END>'; printf '<NOOP><END>' >&2"
        self.assert_taken(self.select_one(self.driver(flood)))
        [first, second] = self.select(
            self.driver('if read line; then exit 1; fi; exec printf "<PICK><SID0007><END>"'), request(), request()
        )
        self.assert_taken(first)
        self.assert_taken(second)

    def test_counts_the_bytes_of_stdout(self):
        block = b"<PICK><SID0007><END>"
        for bytes_max, variables in (
            (65_536, {}),
            (100, {"policy_stdout_max": 100}),
            (70_000, {"policy_stdout_max": 70_000}),
        ):
            for size, taken in ((bytes_max, True), (bytes_max + 1, False)):
                with self.subTest(size=size, bytes_max=bytes_max):
                    selection = self.select_one(self.printing(block + b"\n" * (size - len(block))), **variables)
                    (self.assert_taken if taken else self.assert_fallback)(selection)
        patch = {"a": "x" * (65_536 - len('<PICK><SID0007><INP>{"a":""}</INP><END>'))}
        output = f"<PICK><SID0007><INP>{json.dumps(patch, separators=(',', ':'))}</INP><END>".encode()
        self.assertEqual(len(output), 65_536)
        self.assert_taken(self.select_one(self.printing(output)), patch)

    def test_writes_the_payload_for_its_driver_alone(self):
        command = self.driver(
            'umask 077; cp "$1" "$0.seen"; ls -l "$1" > "$0.mode"; printf "%s" "$#" > "$0.count"; echo "<NOOP><END>"'
        )
        sent = request(
            {"text": "\u00e9\u0000</INP>", "n": [9007199254740991, {"deep": None}]},
            [entry(3, tags=["a", "<END>"]), entry(0)],
        )
        self.select(command, {**sent, "more": 1})
        self.assertEqual(json.loads((self.root / "driver.sh.seen").read_bytes()), sent)
        self.assertTrue((self.root / "driver.sh.mode").read_text().startswith("-rw-------"))
        self.assertEqual((self.root / "driver.sh.count").read_text(), "1")

    def test_passes_arguments_unexpanded(self):
        command = self.driver('for a; do printf "[%s]" "$a"; done > "$0.args"; echo "<NOOP><END>"')
        self.select(command + " $HOME '*' \"a b\" ; '' `id`", request())
        seen = (self.root / "driver.sh.args").read_text()
        self.assertTrue(seen.startswith("[$HOME][*][a b][;][][`id`][/"), seen)

    def test_passes_on_what_a_driver_needs_and_no_secrets(self):
        secrets = {
            name: "leak" for name in ("BASH_ENV", "ENV", "NODE_OPTIONS", "PYTHONSTARTUP", "API_TOKEN", "AWS_SECRET_KEY")
        }
        self.select(
            self.driver('env > "$0.env"; echo "<NOOP><END>"'),
            request(),
            policy_llm_url="u",
            policy_llm_auth="a",
            **secrets,
        )
        seen = (self.root / "driver.sh.env").read_text().splitlines()
        for line in (f"PATH={SEARCH_PATH}", f"HOME={self.folder}", f"TMPDIR={self.tmp}"):
            self.assertIn(line, seen)
        self.assertIn("MACHINA_POLICY_LLM_URL=u", seen)
        self.assertIn("MACHINA_POLICY_LLM_AUTH=a", seen)
        self.assertFalse([line for line in seen if "leak" in line])

    def test_sets_the_documented_limits(self):
        command = self.driver('cat /proc/self/limits > "$0.limits"; echo "<NOOP><END>"')
        rows = ("Max cpu time", "Max address space", "Max file size", "Max open files", "Max processes")
        for values, limits in (
            ({}, [2, 768 << 20, 10 << 20, 64, 32]),
            ({"cpu_sec": 1, "as_mb": 500, "fsize_mb": 3, "nofile": 20, "nproc": 90}, [1, 500 << 20, 3 << 20, 20, 90]),
        ):
            self.select(command, request(), **{f"policy_rlimit_{name}": value for name, value in values.items()})
            seen = (self.root / "driver.sh.limits").read_text().splitlines()
            soft = [int(line[26:].split()[0]) for row in rows for line in seen if line.startswith(row)]
            self.assertEqual(soft, limits)

    def test_a_driver_that_breaks_a_limit_has_failed(self):
        for text, variables in (
            ("while :; do :; done", {"policy_rlimit_cpu_sec": 1, "policy_timeout_ms": 20_000}),
            (
                'head -c 3000000 /dev/zero > "$0.big" || exit 1; echo "<PICK><SID0007><END>"',
                {"policy_rlimit_fsize_mb": 1},
            ),
        ):
            with self.subTest(text):
                selections = self.select(self.driver(text), request(), request(), **variables)
                self.assertEqual(len(selections), 2)
                for selection in selections:
                    self.assert_fallback(selection)

    def test_runs_drivers_for_their_mode_only(self):
        command = self.printing(b"<PICK><SID0007><END>")
        [fallback, other, missing, first, last] = self.select(
            command,
            request(control_mode="FALLBACK_ONLY"),
            request(control_mode="policy_only"),
            {name: value for name, value in request().items() if name != "control_mode"},
            request(control_mode="FALLBACK_ONLY", menu=[entry(9), entry(7)]),
            request(),
        )
        self.assert_fallback(fallback)
        for selection in (other, missing):
            self.assertIn((selection["kind"], selection.get("sid")), (("PICK", "SID0001"), ("INVALID", None)))
        self.assertEqual(first["kind"], "PICK")
        self.assert_taken(last)
        self.assertEqual(self.starts(), 1)
        self.assert_fallback(self.select_one(None))

    def test_refuses_commands_that_are_not_allowed(self):
        self.driver("echo '<PICK><SID0007><END>'")
        outside = self.folder / "outside.sh"
        outside.write_text('echo >> "$0.starts"; echo "<PICK><SID0007><END>"\n')
        twin = self.folder / "policies2"
        twin.mkdir()
        shutil.copy(self.root / "driver.sh", twin)
        (self.root / "link.sh").symlink_to(outside)
        (self.root / "out").symlink_to(twin)
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "deep").mkdir()
        (self.root / "side").symlink_to(elsewhere / "deep")  # side/.. is not the root
        script = self.folder / "run.sh"
        shutil.copy(outside, script)
        script.write_text("#!/bin/sh\n" + script.read_text())
        script.chmod(0o755)
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "bash").symlink_to(shutil.which("cat", path=SEARCH_PATH))
        for command in (
            "cat policies/driver.sh", "SH policies/driver.sh", "sh2 policies/driver.sh", "dash policies/driver.sh",
            "env sh policies/driver.sh", "sh", "sh ''", "sh -s", "sh -", "sh -- policies/driver.sh",
            "sh +x policies/driver.sh", "sh -x policies/driver.sh", "sh -c policies/driver.sh",
            "sh -c 'echo \"<NOOP><END>\"' policies/driver.sh", "python3 -m policies",
            "python3 -c 1 policies/driver.sh", "python3 -u policies/driver.sh", "sh outside.sh", f"sh {outside}",
            "sh policies/../outside.sh", "sh policies/link.sh", "sh policies/out/driver.sh",
            "sh policies2/driver.sh", "sh policies/side/../driver.sh", "sh /dev/stdin", "sh /dev/null",
            "sh policies", "run.sh", "./run.sh", str(script), f"{tools}/bash policies/driver.sh",
            "'sh policies/driver.sh", "sh policies/driver.sh\\",
        ):  # fmt: skip
            with self.subTest(command):
                selections = self.select(
                    command, request(), request(), policy_allowed_exe="", PATH=f"{SEARCH_PATH}:{self.folder}"
                )
                self.assertEqual([selection["kind"] for selection in selections], ["INVALID", "INVALID"])
        for command in ("run.sh", "./run.sh"):
            selection = self.select_one(command, policy_allowed_exe="run.sh", PATH=f"{SEARCH_PATH}:{self.folder}")
            self.assertEqual(selection["kind"], "INVALID")
        self.assertEqual(list(self.folder.rglob("*.starts")), [])

    def test_runs_commands_that_are_allowed(self):
        self.printing(b"<PICK><SID0007><END>")
        script = self.root / "run.sh"
        script.write_text(
            "#!/bin/sh\n" + (self.root / "driver.sh").read_text().replace("$0.out", "${0%run.sh}driver.sh.out")
        )
        script.chmod(0o755)
        sub = self.root / "sub"
        sub.mkdir()
        (sub / "link.sh").symlink_to("../driver.sh")
        shutil.copy(self.root / "driver.sh.out", sub / "link.sh.out")
        other = self.folder / "other"
        other.mkdir()
        shutil.copy(self.root / "driver.sh", other)
        shutil.copy(self.root / "driver.sh.out", other)
        (self.folder / "way").symlink_to(self.root)
        (self.root / "pick.py").write_text("print('<PICK><SID0007><END>')\n")
        for command, variables in (
            ("sh policies/driver.sh", {}),
            ("bash policies/driver.sh more 'words'", {}),
            ("python3 policies/pick.py", {}),
            (f"sh {self.root}/driver.sh", {}),
            ("sh policies/sub/../driver.sh", {}),
            ("sh policies/sub/link.sh", {}),
            ("sh way/driver.sh", {}),
            ("sh other/driver.sh", {"policy_allowed_script_root": "other"}),
            ("sh other/driver.sh", {"policy_allowed_script_root": f"{self.root}/../other/"}),
            ("sh policies/driver.sh", {"MACHINA_ROOT": str(self.folder)}),
            ("policies/run.sh", {"policy_allowed_exe": "x, run.sh"}),
            ("sh -c 'sh policies/driver.sh'", {"policy_allow_unsafe": 1}),
            ("env sh policies/driver.sh", {"policy_allow_unsafe": 1}),
        ):
            with self.subTest(command):
                self.assert_taken(self.select_one(command, **variables))
        self.assertEqual(self.select_one("sh policies/driver.sh", MACHINA_ROOT=str(other))["kind"], "INVALID")
        self.assertEqual(self.select_one("env sh policies/driver.sh", policy_allow_unsafe="true")["kind"], "INVALID")

    def test_failures_open_the_breaker_and_refusals_do_not(self):
        for command, counted in (("sh policies/missing.sh", True), ("nothing-of-this-name", True), ("cat", False)):
            with self.subTest(command):
                steps = self.select(
                    command, *[request()] * 3, policy_fail_threshold=2, policy_allowed_exe="sh,nothing-of-this-name"
                )
                kinds = [selection["kind"] for selection in steps]
                self.assertEqual(kinds, ["PICK" if counted else "INVALID"] * 3)
        self.select(self.driver("exit 1"), *[request()] * 8)
        self.assertEqual(self.starts(), 5)

    def test_breaker_closes_after_its_cooldown(self):
        process = self.start(
            self.driver('[ -e "$0.good" ] && echo "<PICK><SID0007><END>"'),
            policy_fail_threshold=2,
            policy_cooldown_ms=600,
        )

        def step(starts):
            process.stdin.write(json.dumps(request()).encode() + b"\n")
            process.stdin.flush()
            selection = json.loads(process.stdout.readline())
            self.assertEqual(self.starts(), starts)
            return selection

        def cool_down():
            time.sleep(0.8)  # the contract's own time

        self.assert_fallback(step(1))
        self.assert_fallback(step(2))
        self.assert_fallback(step(2))
        cool_down()
        self.assert_fallback(step(3))
        self.assert_fallback(step(3))
        cool_down()
        (self.root / "driver.sh.good").touch()
        self.assert_taken(step(4))
        (self.root / "driver.sh.good").unlink()
        self.assert_fallback(step(5))
        self.assert_fallback(step(6))
        self.assert_fallback(step(6))
        process.stdin.close()
        self.assertEqual(process.wait(DEADLINE_S), 0)

    def test_malformed_lines_are_answered_and_passed_over(self):
        command = self.printing(b"<PICK><SID0007><END>")
        malformed = [
            b"nope", b"[]", b"null", b"{}}", b"\xef\xbb\xbf{}", b'{"menu":\xff}',
            json.dumps(request(inputs=[])).encode(), json.dumps(request(menu={})).encode(),
            json.dumps(request(menu=[3])).encode(), json.dumps(request(goal_digest=3)).encode(),
            json.dumps(request(menu=[entry(1, sid="SID1")])).encode(),
        ]  # fmt: skip
        selections = self.select(command, *malformed, request())
        self.assertEqual([selection["kind"] for selection in selections], ["INVALID"] * len(malformed) + ["PICK"])
        self.assert_taken(selections[-1])
        self.assertEqual(self.starts(), 1)

    def test_limit_of_a_request(self):
        command = self.printing(b"<PICK><SID0007><END>")

        def padded(size):
            line = json.dumps(request(pad="")).encode()
            return line.replace(b'"pad": ""', b'"pad": "' + b"x" * (size - len(line)) + b'"')

        selections = self.select(
            command, padded(REQUEST_BYTES_MAX), padded(REQUEST_BYTES_MAX + 3), padded(2 * REQUEST_BYTES_MAX), request()
        )
        self.assertEqual([selection["kind"] for selection in selections], ["PICK", "INVALID", "INVALID", "PICK"])
        self.assertEqual(self.starts(), 2)
        deep = json.loads("[" * 61 + "]" * 61)
        self.assert_taken(self.select(command, request({"a": deep}))[0])
        self.assertEqual(len(self.select(command, b"[" * 200_000, request())), 2)

    def test_sigterm_takes_the_driver_along(self):
        os.mkfifo(self.root / "driver.sh.fifo")
        process = self.start(self.driver('echo > "$0.fifo"; setsid sleep 60 & exec sleep 60'), policy_timeout_ms=60_000)
        process.stdin.write(json.dumps(request()).encode() + b"\n")
        process.stdin.flush()
        with open(self.root / "driver.sh.fifo") as fifo:
            fifo.readline()
        process.send_signal(signal.SIGTERM)
        process.wait(DEADLINE_S)
        process.stdin.close()
        self.assert_nothing_is_left()

    def test_runs_the_example_drivers(self):
        for name, command in DRIVERS.items():
            with self.subTest(name):
                root = pathlib.Path(command[1]).parent
                asked = request({"policy_patch": {"k": "</INP>"}, "url": 1}, [entry(1), entry(7, tags=["http"])])
                selections = self.select(
                    f"{name.replace('python', 'python3')} {command[1]}", asked, policy_allowed_script_root=root
                )
                self.assert_taken(selections[0], {"k": "</INP>"})


class Drivers(unittest.TestCase):
    """Each driver by itself: a payload file in, a block out."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="test-policy-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def decide(self, command, payload):
        """A payload (bytes, an object, or None for no file) → (stdout, exit status)."""
        path = self.folder / "payload.json"
        path.unlink(missing_ok=True)
        if payload is not None:
            path.write_bytes(payload if isinstance(payload, bytes) else json.dumps(payload).encode())
        done = subprocess.run([*command, str(path)], stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE_S)
        self.assertEqual(os.listdir(self.folder), [] if payload is None else ["payload.json"])
        return done.stdout, done.returncode

    def each(self, payloads):
        for name, command in DRIVERS.items():
            for payload in payloads:
                with self.subTest(name, payload=repr(payload)[:80]):
                    yield name, payload, *self.decide(command, payload)

    def test_picks(self):
        http, shell, file = entry(3, tags=["http"]), entry(4, tags=["x", "shell"]), entry(5, tags=["file"])
        for inputs, menu, printed in (
            ({}, [entry(7)], b"<PICK><SID0007><END>"),
            ({"policy": "stop"}, [entry(7)], b"<NOOP><END>"),
            ({"policy": "ask"}, [entry(7)], b"<ASK_SUP><END>"),
            ({"url": 1, "cmd": 1}, [entry(7), shell, http], b"<PICK><SID0003><END>"),
            ({"cmd": 1, "path": 1}, [entry(7), file, shell, entry(8, tags=["shell"])], b"<PICK><SID0004><END>"),
            ({"path": 1}, [entry(7), file], b"<PICK><SID0005><END>"),
            ({"path": 1}, [entry(7), http], b"<PICK><SID0007><END>"),
            ({}, [], b"<ASK_SUP><END>"),
        ):
            for _, _, stdout, status in self.each([request(inputs, menu)]):
                self.assertEqual((stdout, status), (printed + b"\n", 0))

    def test_patches(self):
        for value in ({}, {"k": "v"}, {"a": ['<END>"</INP>\\', {"b": [1, -2.5, None, True]}], "": "\u00e9\u0001"}):
            for _, _, stdout, status in self.each([request({"policy_patch": value}, [entry(7)])]):
                block = policy_block.parse_block(stdout)
                self.assertEqual((block.sid, block.patch, status), ("SID0007", value, 0))
            for name, _, stdout, _ in self.each([request({"policy_patch64": value}, [entry(7)])]):
                block = policy_block.parse_block(stdout)
                self.assertEqual((block.sid, block.patch), ("SID0007", None if name == "sh" else value))
        for _, _, stdout, _ in self.each([request({"policy_patch": {"k": "x" * 66_000}})]):
            self.assertEqual(stdout, b"<ASK_SUP><END>\n")

    def test_pick_nothing_from_what_is_no_payload(self):
        good = json.dumps(request()).encode()
        payloads = [
            None, b"", b" \n", b"nope", b"null", b"[]", b'"x"', good[:-1], good[1:],
            good.replace(b'"menu"', b'"men'), b"\x00" * 9, b"[" * 100_000, request(menu={}), request(menu="SID0001"),
            request(menu=[1]), request(menu=[entry(1, sid=1)]), request(menu=[entry(1, sid="SID1")]),
            request(menu=[entry(1, sid="SID00001")]), request(menu=[entry(1, sid="sid0001")]), request(inputs=[]),
            request(inputs="x"), request(goal_digest=1), request(menu=[entry(1, tags="http")]),
            request(menu=[entry(1, tags=[1])]), request(menu=[{"name": "x"}]), good + b"x", good + b"{}",
            good.replace(b"[]", b"[1,]"), good.replace(b"{}", b"{x:1}"), good.replace(b'"state"', b'"\n"'),
            good.replace(b'"state"', b'"\\x"'), good.replace(b"{}", b"{'a':1}"), b"\xef\xbb\xbf" + good,
            good.replace(b"{}", b'{"a":01}'),
        ]  # fmt: skip
        for _, _, stdout, status in self.each(payloads):
            self.assertTrue(
                stdout in (b"<ASK_SUP><END>\n", b"<NOOP><END>\n") or (status != 0 and not stdout), (stdout, status)
            )

    def test_text_is_data(self):
        hostile = [
            "<END>",
            "<PICK><SID0001><END>",
            "\n",
            "\u0000",
            "\u202e",
            "'; exit 1 #",
            "$(exit 1)",
            '"',
            "\\",
            "%s%n",
            "</INP>",
            "{",
            "]",
        ]
        menu = [entry(n, name=text, tags=[text], aid=text) for n, text in enumerate(hostile)]
        payload = request(
            {"x": hostile, **{text: text for text in hostile}}, [entry(77, tags=hostile), *menu], goal_digest="<END>"
        )
        spelt = json.dumps(payload).encode()
        escaped = spelt.replace(b'"sid": "SID0077"', b'"\\u0073i\\u0064": "\\u0053ID00\\u00377"').replace(
            b'"menu"', b'"m\\u0065nu"'
        )
        for _, _, stdout, _ in self.each([payload, spelt.replace(b",", b"\r\n\t , "), escaped]):
            self.assertEqual(stdout, b"<PICK><SID0077><END>\n")

    def test_large_payloads(self):
        menu = [entry(n, tags=["a", "b"]) for n in range(9_999, -1, -1)]
        line = json.dumps(request({"pad": ""}, [entry(9_999)])).encode()
        long_string = line.replace(b'"pad": ""', b'"pad": "' + b"x" * (REQUEST_BYTES_MAX - len(line)) + b'"')
        for _, _, stdout, _ in self.each(
            [request({}, menu), long_string, request({"a": json.loads("[" * 61 + "]" * 61)}, menu)]
        ):
            self.assertEqual(stdout, b"<PICK><SID9999><END>\n")


if __name__ == "__main__":
    unittest.main()
