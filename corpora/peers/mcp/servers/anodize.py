"""An MCP server on anodize-mcp, a framework in pure Python with a protocol core of its own."""

import asyncio

from anodize_mcp import AnodizeMCP

mcp = AnodizeMCP("anodize")


@mcp.tool(annotations={"readOnlyHint": True})
def echo(text: str) -> str:
    """Gives the text back."""
    return text


@mcp.tool(annotations={"readOnlyHint": True})
async def wait(ms: int, text: str = "") -> str:
    """Waits, then gives the text back."""
    await asyncio.sleep(ms / 1000)
    return text


@mcp.resource("notes://one")
def note() -> str:
    """A note."""
    return "one"


@mcp.prompt
def greet(name: str) -> str:
    """A greeting."""
    return f"Greet {name}."


if __name__ == "__main__":
    mcp.run()
