#!/usr/bin/env python3
"""An envelope engine: takes an envelope and gives it back with its defaults.

    envelope_engine.py process         one envelope on standard input, one on standard output
    envelope_engine.py --http PORT     one as the body of each POST to /api/v1/process, on 127.0.0.1

It runs no stages. What is no envelope is refused: exit status 1, or HTTP status 400, and an object with `error`.
"""

import datetime
import re
import secrets
import sys

import strict_json

ENVELOPE_BYTES_MAX = 10 * 1024 * 1024
INTEGER_MAX = 2**53 - 1
WHITE_SPACE = b" \t\r\n"
PATH = "/api/v1/process"
# White space around an envelope does not count.
BODY_BYTES_MAX = 2 * ENVELOPE_BYTES_MAX + 1024
# Fields of RFC 3339; fractions have any number of digits.
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|[+-](\d\d):(\d\d))", re.ASCII
)
REASONS = (
    "completed_successfully clarification_required confirmation_required denied_by_policy tool_failed_recoverably "
    "tool_failed_fatally max_iterations_exceeded max_llm_calls_exceeded max_agent_hops_exceeded "
    "max_critic_fires_exceeded"
).split()
GOAL_STATUSES = ("pending", "satisfied", "failed")


class Refused(ValueError):
    """What was read is no envelope."""


def is_text(value):
    return isinstance(value, str)


def is_flag(value):
    return isinstance(value, bool)


def is_map(value):
    return isinstance(value, dict)


def is_whole(value):
    if isinstance(value, bool):
        return False
    # A float that is whole lies beyond the integers that every reader keeps.
    return isinstance(value, int) or isinstance(value, float) and value.is_integer()


def is_time(value):
    found = _TIME.fullmatch(value) if is_text(value) else None
    if not found:
        return False
    year, month, day, hour, minute, second, hours, minutes = (int(part or 0) for part in found.groups())
    try:
        datetime.datetime(year, month, day, hour, minute, second)
    except ValueError:
        return False
    return hours <= 23 and minutes <= 59


def at_least(least):
    return lambda value: is_whole(value) and value >= least


def one_of(names):
    return lambda value: is_text(value) and value in names


def identifier(prefix):
    pattern = re.compile(prefix + "[a-f0-9]{16}")
    return lambda value: is_text(value) and pattern.fullmatch(value) is not None


def list_of(is_item):
    return lambda value: isinstance(value, list) and all(is_item(item) for item in value)


def map_of(is_item):
    return lambda value: is_map(value) and all(is_item(item) for item in value.values())


def nothing():
    return None


def new(prefix):
    return lambda: prefix + secrets.token_hex(8)


# Name: whether a value is one of the member's, what stands in for it, and whether null is a value of its own.
STAGE = {
    "stage_number": (is_whole, None, False),
    "satisfied_goals": (list_of(is_text), list, False),
    "summary": (is_map, dict, False),
    "plan_id": (is_text, nothing, True),
}
MEMBERS = {
    "envelope_id": (identifier("env_"), new("env_"), False),
    "request_id": (identifier("req_"), new("req_"), False),
    "user_id": (is_text, lambda: "anonymous", False),
    "session_id": (identifier("sess_"), new("sess_"), False),
    "raw_input": (is_text, str, False),
    "received_at": (is_time, None, False),
    "outputs": (map_of(is_map), dict, False),
    "current_stage": (is_text, lambda: "start", False),
    "stage_order": (list_of(is_text), list, False),
    "iteration": (at_least(0), int, False),
    "max_iterations": (at_least(1), lambda: 3, False),
    "llm_call_count": (at_least(0), int, False),
    "max_llm_calls": (at_least(1), lambda: 10, False),
    "agent_hop_count": (at_least(0), int, False),
    "max_agent_hops": (at_least(1), lambda: 21, False),
    "terminal_reason": (one_of(REASONS), nothing, True),
    "terminated": (is_flag, bool, False),
    "termination_reason": (is_text, nothing, True),
    "clarification_pending": (is_flag, bool, False),
    "clarification_question": (is_text, nothing, True),
    "clarification_response": (is_text, nothing, True),
    "confirmation_pending": (is_flag, bool, False),
    "confirmation_id": (is_text, nothing, True),
    "confirmation_message": (is_text, nothing, True),
    "confirmation_response": (is_flag, nothing, True),
    "completed_stages": (list_of(is_map), list, False),
    "current_stage_number": (at_least(1), lambda: 1, False),
    "max_stages": (at_least(1), lambda: 5, False),
    "all_goals": (list_of(is_text), list, False),
    "remaining_goals": (list_of(is_text), list, False),
    "goal_completion_status": (map_of(one_of(GOAL_STATUSES)), dict, False),
    "prior_plans": (list_of(is_map), list, False),
    "critic_feedback": (list_of(is_text), list, False),
    "errors": (list_of(is_map), list, False),
    "completed_at": (is_time, nothing, True),
    "metadata": (is_map, dict, False),
    "processing_history": (lambda value: isinstance(value, list), list, False),
}


def filled(given, members):
    """`given` with defaults for what is absent; raises Refused for what a member cannot be."""
    complete = dict(given)
    for name, (is_right, default, is_nullable) in members.items():
        value = given.get(name)
        if value is not None:
            if not is_right(value):
                raise Refused(f"{name} has a value that it cannot have")
        elif is_nullable and name in given:
            continue
        elif default is not None:
            complete[name] = default()
        else:
            complete.pop(name, None)
    return complete


def processed(text):
    """The envelope of a JSON text, complete."""
    given = strict_json.loads(text)
    if not is_map(given):
        raise Refused("an envelope is an object")
    envelope = filled(given, MEMBERS)
    envelope["completed_stages"] = [filled(stage, STAGE) for stage in envelope["completed_stages"]]
    return envelope


def answered(text):
    """The reply to a text, and whether it is an envelope."""
    text = text.strip(WHITE_SPACE)
    try:
        if len(text) > ENVELOPE_BYTES_MAX:
            raise Refused("an envelope has at most 10 MB")
        reply, is_fine = processed(text), True
    except ValueError as error:
        reply, is_fine = {"error": str(error)}, False
    return strict_json.dumps(reply).encode("utf-8") + b"\n", is_fine


def read(stream):
    """The text of an envelope; what is too large is read and not kept."""
    text = stream.read(BODY_BYTES_MAX)
    while stream.read(1 << 16):
        text = b"." * (ENVELOPE_BYTES_MAX + 1)
    return text


def serve(port):
    # Whoever runs `process` need not wait for it.
    from http_bodies import Handler, Server

    class Engine(Handler):
        server_version = "envelope"
        body_bytes_max = BODY_BYTES_MAX

        def is_here(self):
            return self.path.split("?")[0] == PATH

        def answer(self, body):
            if len(body.strip(WHITE_SPACE)) > ENVELOPE_BYTES_MAX:
                return self.reply(413)
            reply, is_fine = answered(body)
            self.reply(200 if is_fine else 400, reply)

    Server(port, Engine).serve_forever()


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--http" and arguments[1].isdecimal():
        serve(int(arguments[1]))
    if arguments != ["process"]:
        print("usage: envelope_engine.py process | --http PORT", file=sys.stderr)
        return 2
    reply, is_fine = answered(read(sys.stdin.buffer))
    sys.stdout.buffer.write(reply)
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
