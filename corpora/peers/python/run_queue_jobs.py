"""What workers and writers of a queue share: jobs, and names of their own."""

import os
import secrets
import time

import strict_json

JOB_BYTES_MAX = 10 * 1024 * 1024
NAME_BYTES_MAX = 255


class Malformed(ValueError):
    """The text is no job."""


def parse(text):
    """Returns the RunRequest in `text` (bytes); raises Malformed."""
    if len(text) > JOB_BYTES_MAX:
        raise Malformed("it has more than 10 MB")
    try:
        job = strict_json.loads(text)
    except strict_json.MalformedJson as error:
        raise Malformed(str(error)) from None
    if not isinstance(job, dict):
        raise Malformed("it is not an object")
    if not isinstance(job.get("goal_id"), str) or not job["goal_id"]:
        raise Malformed("goal_id is not a string that holds something")
    if not isinstance(job.get("inputs", {}), dict):
        raise Malformed("inputs is not an object")
    return job


def put(queue, text):
    """Puts the job `text` (bytes) into the inbox of `queue` and returns the name of its file.

    The file is on the disk, and has its name there unless the disk cannot tell. Raises Malformed, or OSError where it cannot be stored.
    """
    parse(text)
    inbox, temporary = os.path.join(queue, "inbox"), os.path.join(queue, "tmp")
    os.makedirs(inbox, exist_ok=True)
    os.makedirs(temporary, exist_ok=True)
    own = f"{time.time_ns()}-{secrets.token_hex(8)}"
    written = os.path.join(temporary, own)
    try:
        with open(written, "xb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # The name is ours alone, so that nothing is replaced.
        os.rename(written, os.path.join(inbox, f"{own}.json"))
    except OSError:
        if os.path.exists(written):
            os.unlink(written)
        raise
    try:
        folder = os.open(inbox, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError:
        # It is in the inbox, and may be taken already.
        pass
    return f"{own}.json"
