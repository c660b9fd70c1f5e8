"""Tools that reach out of their process, and whose effects a harness knows beforehand.

Each role takes its payload as the one positional argument or as keywords. The `route` of a payload names one of several ways to
do the same thing; a role returns {"seen": what it saw itself}. With `catch` an exception is caught and `seen` is null. What
`env_write` saw is written backwards: so it cannot be taken for a message that quotes the request.
Nothing is imported here but what every interpreter has loaded already; what a route needs it imports itself.
"""

import os
import sys


def payload_of(given, named):
    return given[0] if given else named


def any(*given, **named):
    return {"any": 1}


def routed(given, named, does, plain):
    """Takes the route of the payload; some lead to `plain`, another route, from another place."""
    payload = payload_of(given, named)
    route = payload["route"]

    def act():
        if route == "thread":
            return in_thread(lambda: does(plain, payload))
        if route == "atexit":
            import atexit

            atexit.register(later, does, plain, payload)
            return "later"
        return does(route, payload)

    if not payload.get("catch"):
        return {"seen": act()}
    try:
        return {"seen": act()}
    except Exception:
        return {"seen": None}


def later(does, plain, payload):
    """What it saw is told to a listener: the reply was given before."""
    seen = does(plain, payload)
    if does in (do_read, do_env_read):
        do_connect("create_connection", {**payload, "text": str(seen)})


def in_fork(act):
    """What a child saw, which need not become another program."""
    end, other = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(other, str(act()).encode())
        finally:
            os._exit(0)
    os.close(other)
    seen = os.read(end, 4096).decode()
    os.close(end)
    os.waitpid(child, 0)
    return seen


def in_thread(act):
    import threading

    seen = []

    def run():
        try:
            seen.append(act())
        except Exception:
            pass

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return seen[0] if seen else None


def libc():
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def around(path):
    """The same path through `..`."""
    folder, name = os.path.split(path)
    return os.path.join(folder, "tools", "..", name)


def below_proc(path):
    """The same path, by what the system tells of this process."""
    return "/proc/self/root" + path


def from_here(path):
    """The same path from the working directory; as it is where that leads through `..`, which is another route."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


# What `open` is asked for by routes that differ in nothing else.
MODES = {"open": "w", "append": "a", "exclusive": "x", "update": "r+"}


def write(*given, **named):
    return routed(given, named, do_write, "open")


def do_write(route, payload):
    path, text = payload["path"], payload["text"]
    data = text.encode()
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    if route in MODES:
        with open(path, MODES[route]) as file:
            file.write(text)
    elif route == "pathlib":
        import pathlib

        pathlib.Path(path).write_text(text)
    elif route == "mkdir":
        os.mkdir(path)
    elif route == "remove":
        os.remove(path)
    elif route == "io":
        import io

        with io.open(path, "w") as file:
            file.write(text)
    elif route == "_io":
        import _io

        _io.FileIO(path, "w").write(data)
    elif route == "os_open":
        os.write(os.open(path, flags), data)
    elif route == "posix":
        import posix

        posix.write(posix.open(path, flags), data)
    elif route == "shutil":
        import shutil

        shutil.copyfile(__file__, path)
    elif route == "sqlite3":
        import sqlite3

        with sqlite3.connect(path) as base:
            base.execute("create table t (t)")
    elif route == "mmap":
        import mmap

        with open(path, "r+b") as file:
            with mmap.mmap(file.fileno(), len(data)) as memory:
                memory[:] = data
    elif route == "overwrite":
        with open(path, "r+b") as file:
            file.write(data)
    elif route == "rename":
        os.rename(payload["from"], path)
    elif route == "link":
        os.link(payload["from"], path)
    elif route == "symlink":
        os.symlink("nowhere", path)
    elif route == "mkfifo":
        os.mkfifo(path)
    elif route == "truncate":
        os.truncate(path, 0)
    elif route == "rmdir":
        os.rmdir(path)
    elif route == "chmod":
        os.chmod(path, 0o751)
    elif route == "dotdot":
        do_write("open", {"path": around(path), "text": text})
    elif route == "relative":
        do_write("open", {"path": from_here(path), "text": text})
    elif route == "through_link":
        do_write("open", {"path": payload["link"], "text": text})
    elif route == "proc":
        do_write("open", {"path": below_proc(path), "text": text})
    elif route == "child":
        import subprocess

        subprocess.run(["sh", "-c", 'printf %s "$1" > "$2"', "sh", text, path], check=True)
    elif route == "fork":
        child = os.fork()
        if not child:
            try:
                do_write("open", payload)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    elif route == "ctypes":
        c = libc()
        c.write(c.open(path.encode(), flags, 0o644), data, len(data))
    return "done"


def read(*given, **named):
    return routed(given, named, do_read, "open")


def do_read(route, payload):
    path = payload["path"]
    if route == "open":
        with open(path) as file:
            return file.read()
    if route == "pathlib":
        import pathlib

        return pathlib.Path(path).read_text()
    if route == "io":
        import io

        with io.open(path) as file:
            return file.read()
    if route == "_io":
        import _io

        return _io.FileIO(path, "r").read().decode()
    if route == "os_open":
        return os.read(os.open(path, os.O_RDONLY), 4096).decode()
    if route == "posix":
        import posix

        return posix.read(posix.open(path, posix.O_RDONLY), 4096).decode()
    if route == "shutil":
        import io
        import shutil

        out = io.BytesIO()
        with open(path, "rb") as file:
            shutil.copyfileobj(file, out)
        return out.getvalue().decode()
    if route == "mmap":
        import mmap

        with open(path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)[:].decode()
    if route == "dotdot":
        return do_read("open", {"path": around(path)})
    if route == "relative":
        return do_read("open", {"path": from_here(path)})
    if route == "through_link":
        return do_read("open", {"path": payload["link"]})
    if route == "proc":
        return do_read("open", {"path": below_proc(path)})
    if route == "fork":
        return in_fork(lambda: do_read("open", payload))
    if route == "child":
        import subprocess

        return subprocess.run(["cat", path], stdout=subprocess.PIPE, check=True).stdout.decode()
    if route == "ctypes":
        import ctypes

        c, room = libc(), ctypes.create_string_buffer(4096)
        c.read(c.open(path.encode(), os.O_RDONLY), room, 4096)
        return room.value.decode()
    if route == "importlib":
        import importlib.machinery

        return importlib.machinery.SourceFileLoader("x", path).get_data(path).decode()
    if route == "linecache":
        import linecache

        return "".join(linecache.getlines(path))
    if route == "listdir":
        return os.listdir(os.path.dirname(path))
    if route == "scandir":
        return [entry.name for entry in os.scandir(os.path.dirname(path))]


def connect(*given, **named):
    return routed(given, named, do_connect, "create_connection")


def do_connect(route, payload):
    import socket

    host, port = payload["host"], int(payload["port"])
    data = b"GET /" + payload["text"].encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n"
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    if route == "create_connection":
        with socket.create_connection((host, port), 5) as link:
            link.sendall(data)
            return link.recv(100).decode()
    if route == "urllib":
        import urllib.request

        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        address = f"[{host}]" if ":" in host else host
        with opener.open(f"http://{address}:{port}/{payload['text']}", timeout=5) as answer:
            return answer.status
    if route == "connect_ex":
        link = socket.socket(kind, socket.SOCK_STREAM)
        failed = link.connect_ex((host, port))
        if not failed:
            link.sendall(data)
            link.recv(100)
        return failed
    if route == "_socket":
        import _socket

        link = _socket.socket(kind, _socket.SOCK_STREAM)
        link.connect((host, port))
        link.sendall(data)
        return link.recv(100).decode()
    if route == "sendto":
        link = socket.socket(kind, socket.SOCK_DGRAM)
        return link.sendto(data, (host, port))
    if route == "nonblocking":
        import select

        link = socket.socket(kind, socket.SOCK_STREAM)
        link.setblocking(False)
        link.connect_ex((host, port))
        select.select([], [link], [], 5)
        link.sendall(data)
        return "done"
    if route == "child":
        import subprocess

        program = (
            "import socket, sys; link = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5);"
            "link.sendall(sys.argv[3].encode()); link.recv(100)"
        )
        words = [sys.executable, "-I", "-S", "-c", program, host, str(port), data.decode()]
        return subprocess.run(words).returncode
    if route == "fork":
        child = os.fork()
        if not child:
            try:
                do_connect("create_connection", payload)
            finally:
                os._exit(0)
        return os.waitpid(child, 0)[1]
    if route == "ctypes":
        import ctypes
        import struct

        c = libc()
        if kind == socket.AF_INET:
            address = struct.pack("=H", kind) + struct.pack("!H", port) + socket.inet_aton(host) + bytes(8)
        else:
            address = struct.pack("=H", kind) + struct.pack("!HI", port, 0)
            address += socket.inet_pton(kind, host) + bytes(4)
        link = c.socket(int(kind), int(socket.SOCK_STREAM), 0)
        failed = c.connect(link, address, len(address))
        c.send(link, data, len(data), 0)
        c.recv(link, ctypes.create_string_buffer(100), 100, 0)
        return failed


def process(*given, **named):
    return routed(given, named, do_process, "subprocess")


def leave_mark(path):
    with open(path, "w") as file:
        file.write("alive")


def do_process(route, payload):
    path = payload["path"]
    words = ["sh", "-c", 'printf alive > "$1"', "sh", path]
    if route == "subprocess":
        import subprocess

        return subprocess.run(words).returncode
    if route == "system":
        return os.system("printf alive > '" + path + "'")
    if route == "popen":
        return os.popen("printf alive > '" + path + "'").read()
    if route == "fork":
        child = os.fork()
        if not child:
            try:
                leave_mark(path)
            finally:
                os._exit(0)
        return os.waitpid(child, 0)[1]
    if route == "forkpty":
        import pty

        child, end = pty.fork()
        if not child:
            try:
                leave_mark(path)
            finally:
                os._exit(0)
        return os.waitpid(child, 0)[1]
    if route == "pty":
        import pty

        return pty.spawn(words, lambda end: os.read(end, 1024), lambda end: b"")
    if route == "posix_spawn":
        return os.waitpid(os.posix_spawn("/bin/sh", words, dict(os.environ)), 0)[1]
    if route == "spawnv":
        return os.spawnv(os.P_WAIT, "/bin/sh", words)
    if route == "_posixsubprocess":
        import _posixsubprocess

        end, other = os.pipe()
        given = [words, [b"/bin/sh"], True, (other,), None, None, -1, -1, -1, -1, -1, -1, end, other, False, False]
        if sys.version_info >= (3, 11):
            given.append(-1)
        given += [None, None, None, -1, None]
        if (3, 11) <= sys.version_info < (3, 14):
            given.append(False)
        return os.waitpid(_posixsubprocess.fork_exec(*given), 0)[1]
    if route == "multiprocessing":
        import multiprocessing

        child = multiprocessing.get_context("fork").Process(target=leave_mark, args=(path,))
        child.start()
        child.join()
        return child.exitcode
    if route == "ctypes":
        return libc().system(("printf alive > '" + path + "'").encode())


def env_read(*given, **named):
    return routed(given, named, do_env_read, "environ")


def do_env_read(route, payload):
    name = payload["name"]
    if route == "environ":
        return os.environ.get(name)
    if route == "item":
        return os.environ[name] if name in os.environ else None
    if route == "getenv":
        return os.getenv(name)
    if route == "environb":
        return os.environb.get(name.encode(), b"").decode()
    if route == "posix":
        import posix

        return posix.environ.get(name.encode(), b"").decode()
    if route == "copy":
        return dict(os.environ).get(name)
    if route == "child":
        import subprocess

        return subprocess.run(["printenv", name], stdout=subprocess.PIPE).stdout.decode()
    if route == "ctypes":
        import ctypes

        c = libc()
        c.getenv.restype = ctypes.c_char_p
        return (c.getenv(name.encode()) or b"").decode()
    if route == "fork":
        return in_fork(lambda: do_env_read("environ", payload))
    if route == "proc":
        return variable_of("self", name)
    if route == "proc_of_parent":
        # What leads up to the process that the harness started has the variable, and nothing above that has it.
        seen, process = [], os.getppid()
        while process and not seen:
            seen = variable_of(process, name)
            with open(f"/proc/{process}/stat") as file:
                process = int(file.read().rpartition(")")[2].split()[1])
        return seen


def variable_of(process, name):
    with open(f"/proc/{process}/environ", "rb") as file:
        entries = file.read().split(b"\0")
    return [entry.decode() for entry in entries if entry.startswith(name.encode() + b"=")]


def env_write(*given, **named):
    return routed(given, named, do_env_write, "environ")


def do_env_write(route, payload):
    name, text = payload["name"], payload["value"]
    was = os.environ.get(name)
    if route == "environ":
        os.environ[name] = text
    elif route == "update":
        os.environ.update({name: text})
    elif route == "setdefault":
        os.environ.setdefault(name, text)
    elif route == "environb":
        os.environb[name.encode()] = text.encode()
    elif route == "putenv":
        os.putenv(name, text)
    elif route == "ctypes":
        libc().setenv(name.encode(), text.encode(), 1)
    elif route == "delete":
        del os.environ[name]
    elif route == "pop":
        os.environ.pop(name)
    elif route == "clear":
        os.environ.clear()
    elif route == "delete_bytes":
        del os.environb[name.encode()]
    elif route == "unsetenv":
        os.unsetenv(name)
    elif route == "ctypes_unset":
        libc().unsetenv(name.encode())
    seen = [os.environ.get(name), os.getenv(name)]
    if route in ("putenv", "ctypes", "unsetenv", "ctypes_unset"):
        import subprocess

        seen.append(subprocess.run(["printenv", name], stdout=subprocess.PIPE).stdout.decode())
    if was == text:
        # It was there, with this value: what counts is that it no longer is.
        return [] if all(seen) else [text[::-1]]
    return [text and text.strip()[::-1] for text in seen]
