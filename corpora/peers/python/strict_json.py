"""Strict JSON (RFC 8259 in strict UTF-8) on top of the standard library, which is too lenient by itself.

Refused besides every syntax error: NaN and Infinity, numbers beyond every double, integers of more than 4,300
digits, duplicate keys, lone surrogate escapes, a byte order mark, bytes after the value, invalid UTF-8, and nesting
beyond the interpreter's recursion limit (several hundred levels; 64 are required).

A number is its value and not its spelling: 1.0 and 1e0 are read as the integer 1.
"""

import json
import math
import re
import sys

INTEGER_EXACT_MAX = 2**53 - 1
INTEGER_DIGITS_MAX = 4_300

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class MalformedJson(ValueError):
    """The input is not one strict JSON value."""


class AmbiguousJson(MalformedJson):
    """The input is JSON, but readers do not agree on its value."""


def loads(data):
    """Returns the one JSON value in `data` (bytes, bytearray or str); raises MalformedJson."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        value = _DECODER.decode(text)
        if _SURROGATE_ESCAPE.search(text):
            dumps(value).encode("utf-8")  # fails on a surrogate without its other half
    except AmbiguousJson:
        try:
            _LENIENT.decode(text)
        except (ValueError, RecursionError) as error:
            raise MalformedJson(str(error)) from None
        raise
    except RecursionError:
        raise MalformedJson("nested too deeply") from None
    except UnicodeEncodeError:
        raise AmbiguousJson("lone surrogate escape") from None
    except UnicodeDecodeError:
        raise MalformedJson("not valid UTF-8") from None
    except json.JSONDecodeError as error:
        raise MalformedJson(f"{error.msg} at character {error.pos}") from None
    except (ValueError, MemoryError) as error:
        raise MalformedJson(str(error) or "out of memory") from None
    return value


def dumps(value):
    """Returns compact strict JSON text; raises ValueError for what JSON cannot say."""
    return _ENCODER.encode(value)


def _object_without_duplicates(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise AmbiguousJson("duplicate key")
    return members


def _finite_number(spelling):
    number = float(spelling)
    if not math.isfinite(number):
        raise MalformedJson("number out of range")
    if number.is_integer() and abs(number) <= INTEGER_EXACT_MAX:
        return int(number)
    return number


def _bounded_integer(spelling):
    if len(spelling) > INTEGER_DIGITS_MAX:
        raise MalformedJson("integer has too many digits")
    return int(spelling)


def _refuse_constant(name):
    raise MalformedJson(f"{name} is not JSON")


if hasattr(sys, "set_int_max_str_digits"):
    # The interpreter bounds int() itself, so the fast built-in path is safe.
    sys.set_int_max_str_digits(INTEGER_DIGITS_MAX)
    _parse_integer = None
else:
    # Without that bound int() takes quadratic time: ten megabytes of digits would hang the peer.
    _parse_integer = _bounded_integer

_DECODER = json.JSONDecoder(
    object_pairs_hook=_object_without_duplicates,
    parse_float=_finite_number,
    parse_int=_parse_integer,
    parse_constant=_refuse_constant,
)
# Tells what is ambiguous from what is malformed besides.
_LENIENT = json.JSONDecoder(
    parse_float=_finite_number, parse_int=_parse_integer, parse_constant=_refuse_constant
)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
