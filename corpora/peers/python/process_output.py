"""Reads what a child writes until it has exited, in one loop, so that no pipe ever blocks another."""

import os
import selectors
import time

from process_tree import POLL_S, has_exited, open_pidfd

PIPE_BYTES = 64 * 1024
STDERR_BYTES_KEPT = 2048
WAIT_S_MAX = 60.0  # of one wait: the system refuses far longer ones


class Output:
    """What one child writes: stdout up to its limit and one pipe beyond it, of stderr the tail.

    `late` and `too_much` are raised at the deadline and beyond the limit.
    """

    def __init__(self, process, stdout_bytes_max, late, too_much):
        self.process = process
        self.stdout = bytearray()
        self.stderr_tail = b""
        self._stdout_bytes_max = stdout_bytes_max
        self._late = late
        self._too_much = too_much
        self._selector = selectors.DefaultSelector()
        self._watch(process.stdout, selectors.EVENT_READ, self._receive)
        self._watch(process.stderr, selectors.EVENT_READ, self._drain)

    def read_until(self, deadline):
        """Returns when the child has exited and what it wrote is read.

        The exit ends it: a descendant that still holds the pipes is not waited for. The end of stdout does not.
        """
        pidfd = open_pidfd(self.process.pid)
        if pidfd is not None:
            self._selector.register(pidfd, selectors.EVENT_READ, None)
        try:
            while not has_exited(self.process.pid):
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0:
                    raise self._late
                self._step(min(remaining_s, WAIT_S_MAX if pidfd is not None else POLL_S))
            while self._step(0):
                pass  # what is in the pipes already
        finally:
            self._selector.close()
            if pidfd is not None:
                os.close(pidfd)

    def _watch(self, pipe, event, action):
        os.set_blocking(pipe.fileno(), False)
        self._selector.register(pipe, event, action)

    def _step(self, wait_s):
        """Waits for events and handles them. Returns whether stdout brought anything."""
        received = len(self.stdout)
        for key, _ in self._selector.select(wait_s):
            if key.data is not None:
                key.data(key.fileobj)
        if len(self.stdout) > self._stdout_bytes_max:
            raise self._too_much
        return len(self.stdout) > received

    def _receive(self, pipe):
        self.stdout += self._read(pipe)

    def _drain(self, pipe):
        self.stderr_tail = (self.stderr_tail + self._read(pipe))[-STDERR_BYTES_KEPT:]

    def _read(self, pipe):
        try:
            data = os.read(pipe.fileno(), PIPE_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            self._close(pipe)
        return data

    def _close(self, pipe):
        self._selector.unregister(pipe)
        pipe.close()
