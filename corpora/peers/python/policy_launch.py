"""Which commands may run as a driver, and one run of one: bounded in time, bytes, resources and descendants."""

import os
import re
import subprocess
import sys
import time

from process_output import Output
from process_tree import kill_tree

# Programs that run what their first argument names. Any other listed program is a driver by itself.
_INTERPRETER = re.compile(
    r"(?:python|pythonw|pypy|bash|rbash|sh|dash|ash|ksh|mksh|yash|zsh|fish|csh|tcsh|node|nodejs|deno|bun|perl|ruby|php|lua"
    r"|luajit|tclsh|wish|Rscript|guile|awk|gawk|mawk|sed|env|busybox|nice|nohup|setsid|timeout|xargs|stdbuf|exec)[0-9.]*"
)
_NODE_SUFFIXES = (".js", ".json", ".node", ".mjs", ".cjs")  # node tries some of them where the file itself is missing

# What a driver needs of our environment. The rest, secrets and what changes interpreters above all, stays here.
_PASSED_ON = re.compile(r"PATH|HOME|TMPDIR|LANG|LANGUAGE|LC_[A-Z]+|TZ|USER|LOGNAME|MACHINA_POLICY_LLM_.*", re.DOTALL)

# Re-executed between us and the driver, so that limits are in force before its first instruction and never in us.
# Arguments: a descriptor for an error, limits, the program, its argv. Undoes what Python does to signals.
_SHIM = """\
import _signal, os, resource, sys
fault, limits, program, argv = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
try:
    for name in ("SIGPIPE", "SIGXFSZ"):
        _signal.signal(getattr(_signal, name), _signal.SIG_DFL)
    os.set_inheritable(fault, False)
    for limit in limits.split(","):
        name, value = limit.split("=")
        which = getattr(resource, "RLIMIT_" + name.upper(), None)
        if which is None:
            continue
        hard = resource.getrlimit(which)[1]
        soft = int(value) if hard == resource.RLIM_INFINITY else min(int(value), hard)
        # Beyond the soft limit of processor time comes a signal that can be caught, beyond the hard one none.
        more = 1 if name == "cpu" and (hard == resource.RLIM_INFINITY or soft < hard) else 0
        resource.setrlimit(which, (soft, soft + more))
    os.execv(program, argv)
except OSError as error:
    os.write(fault, os.strerror(error.errno).encode())
except BaseException as error:
    os.write(fault, type(error).__name__.encode())
os._exit(127)
"""
_LIMITS_ORDER = ("cpu", "fsize", "nproc", "nofile", "as")  # what could stop the shim itself comes last


class Disallowed(Exception):
    """The command may not run. Nothing is started and nothing counted."""


class DriverFailure(Exception):
    """A failure that the breaker counts."""


class Launch:
    """What every start has in common."""

    def __init__(self, environ, stdout_bytes_max, limits):
        self.environ = {name: value for name, value in environ.items() if _PASSED_ON.fullmatch(name)}
        self.stdout_bytes_max = stdout_bytes_max
        self.limits = ",".join(f"{name}={limits[name]}" for name in _LIMITS_ORDER)
        self.show_stderr = lambda _tail: None


def split_command(text):
    """Words as a POSIX shell splits them, without any expansion; raises Disallowed for an open quote."""
    words, word, at = [], None, 0
    while at < len(text):
        char = text[at]
        at += 1
        if char in " \t\n":
            if word is not None:
                words.append(word)
                word = None
            continue
        if char == "\\" and text.startswith("\n", at):
            at += 1  # joins two lines and begins no word
            continue
        word = word or ""
        if char == "'":
            end = text.find("'", at)
            if end < 0:
                raise Disallowed("the command has an open quote")
            word += text[at:end]
            at = end + 1
        elif char == '"':
            while True:
                if at >= len(text):
                    raise Disallowed("the command has an open quote")
                char = text[at]
                at += 1
                if char == '"':
                    break
                if char == "\\" and at < len(text) and text[at] in '$`"\\\n':
                    char = "" if text[at] == "\n" else text[at]
                    at += 1
                word += char
        elif char == "\\":
            if at >= len(text):
                raise Disallowed("the command ends with a backslash")
            word += text[at]
            at += 1
        else:
            word += char
    if word is not None:
        words.append(word)
    return words


class Allowlist:
    """Says whether a command may run, and what exactly is started for it."""

    def __init__(self, names, script_root, search_path, unsafe=False):
        self.names = names
        self.script_root = script_root
        self.search_path = search_path
        self.unsafe = unsafe

    def admit(self, words):
        """Words → `(program, argv)`, program None where there is none; raises Disallowed."""
        word = words[0] if words else ""
        program = self.find(word)
        if self.unsafe:
            return program, words
        name = os.path.basename(word)
        if name not in self.names:
            raise Disallowed("its name is not on the list")
        if program is None:
            return None, words  # a launch failure, found out at the start
        real = os.path.realpath(program)
        if is_script(real):
            self.require_under_root(program)  # its own interpreter is named inside it
            return program, words
        if "/" in word:
            found = self.find(name)
            if found is not None and os.path.realpath(found) != real:
                raise Disallowed("PATH finds another program of this name")
        if not self.is_listed(name, real):
            raise Disallowed("it is a link to a program that is not on the list")
        if _INTERPRETER.fullmatch(name) or _INTERPRETER.fullmatch(os.path.basename(real)):
            return program, [word, self.script_of(name, words[1:]), *words[2:]]
        return program, words

    def find(self, word):
        """The file that a word names, through PATH where it has no slash; None where it is no program."""
        if not word:
            return None
        folders = [""] if "/" in word else [folder for folder in self.search_path.split(":") if folder]
        for folder in folders:
            path = os.path.join(os.getcwd(), folder, word)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
        return None

    def is_listed(self, name, real):
        """Whether the file behind the links is a listed program: by its name, by name and version, or as system's sh."""
        base = os.path.basename(real)
        if base in self.names or any(re.fullmatch(re.escape(listed) + r"-?[0-9.]+", base) for listed in self.names):
            return True
        if name == "node" and base == "nodejs":
            return True
        return name == "sh" and any(real == os.path.realpath(shell) for shell in ("/bin/sh", "/usr/bin/sh"))

    def script_of(self, name, arguments):
        """The script of an interpreter, as an absolute path, so that it is searched for nowhere else."""
        script = arguments[0] if arguments else ""
        if not script:
            raise Disallowed("an interpreter without a script")
        if script[0] in "-+":
            raise Disallowed("options before the script")
        path = os.path.join(os.getcwd(), script)  # `..` stays, for whoever resolves it behind a link
        self.require_under_root(path)
        if os.path.isdir(path):
            raise Disallowed("the script is a folder")
        if name.startswith("node") and not os.path.lexists(path):
            for suffix in _NODE_SUFFIXES:
                self.require_under_root(path + suffix)
        return path

    def require_under_root(self, path):
        root = os.path.realpath(self.script_root)
        if not os.path.realpath(path).startswith(root.rstrip("/") + "/"):
            raise Disallowed("the script is not under the script root")


def is_script(path):
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def run_driver(launch, command, payload_path, timeout_s):
    """One start of a driver → all of its stdout; raises DriverFailure. Nothing of it runs when this ends."""
    program, argv = command
    if program is None:
        raise DriverFailure("not started: there is no such program")
    deadline = time.monotonic() + timeout_s
    fault_reader, fault_writer = os.pipe()
    os.set_blocking(fault_reader, False)
    try:
        try:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    "-c",
                    _SHIM,
                    str(fault_writer),
                    launch.limits,
                    program,
                    *argv,
                    payload_path,
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=launch.environ,
                pass_fds=(fault_writer,),
                start_new_session=True,
            )
        finally:
            os.close(fault_writer)
        late = DriverFailure("the driver did not end in time")
        too_much = DriverFailure(f"the driver printed more than {launch.stdout_bytes_max} bytes")
        output = Output(process, launch.stdout_bytes_max, late, too_much)
        try:
            output.read_until(deadline)
        finally:
            kill_tree(process)
            process.stdout.close()
            process.stderr.close()
        fault = os.read(fault_reader, 1024)  # its other end is closed with the last of the driver
    except OSError as error:
        raise DriverFailure(f"not started: {error.strerror}") from None
    finally:
        os.close(fault_reader)
    launch.show_stderr(output.stderr_tail)
    if fault:
        raise DriverFailure(f"not started: {fault.decode('ascii', 'replace')}")
    status = process.returncode
    if status != 0:
        how = f"ended by signal {-status}" if status < 0 else f"exited with status {status}"
        raise DriverFailure(f"the driver {how}")
    return output.stdout
