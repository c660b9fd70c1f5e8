"""The canonical text of JSON (RFC 8785, JCS), which is what a signature is about."""

import json


def canonical(value):
    """Returns the canonical text of a value without lone surrogates and with numbers that a double holds."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (int, float)):
        return canonical_number(float(value))
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    names = sorted(value, key=lambda name: name.encode("utf-16-be"))
    return "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{canonical(value[name])}" for name in names) + "}"


def canonical_number(number):
    """Returns a double as ECMAScript writes it."""
    if number == 0:
        return "0"
    digits, exponent = f"{repr(abs(number))}e0".split("e")[:2]
    whole, _, fraction = digits.partition(".")
    text = (whole + fraction).lstrip("0")
    # The place of the point, counted from the first digit that is not 0.
    point = len(whole) + int(exponent) - (len(whole + fraction) - len(text))
    text = text.rstrip("0")
    if len(text) <= point <= 21:
        text = text + "0" * (point - len(text))
    elif 0 < point <= 21:
        text = f"{text[:point]}.{text[point:]}"
    elif -6 < point <= 0:
        text = f"0.{'0' * -point}{text}"
    else:
        sign = "+" if point > 0 else "-"
        text = f"{text[0]}{'.' + text[1:] if text[1:] else ''}e{sign}{abs(point - 1)}"
    return f"-{text}" if number < 0 else text
