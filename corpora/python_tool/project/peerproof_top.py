"""A module at the top of the project: it lies in no package."""


def any(*given, **named):
    return {"any": 1}
