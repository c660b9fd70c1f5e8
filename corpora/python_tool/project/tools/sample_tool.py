"""The tool of the document's example."""


def greet(*given, **named):
    payload = given[0] if given else named
    return {"message": "Hello " + payload["name"], "ok": True}
