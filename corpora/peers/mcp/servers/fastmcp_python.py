"""An MCP server on FastMCP (Python, `fastmcp`)."""

import asyncio

from fastmcp import FastMCP

mcp = FastMCP("fastmcp-python", version="1.0.0")


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
    mcp.run(show_banner=False)
