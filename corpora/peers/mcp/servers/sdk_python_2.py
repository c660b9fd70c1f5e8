"""An MCP server on version 2 of the Python SDK (`mcp`), with its MCPServer class."""

import asyncio

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

mcp = MCPServer("sdk-python-2")


@mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
def echo(text: str) -> str:
    """Gives the text back."""
    return text


@mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
async def wait(ms: int, text: str = "") -> str:
    """Waits, then gives the text back."""
    await asyncio.sleep(ms / 1000)
    return text


@mcp.resource("notes://one")
def note() -> str:
    """A note."""
    return "one"


@mcp.prompt()
def greet(name: str) -> str:
    """A greeting."""
    return f"Greet {name}."


if __name__ == "__main__":
    mcp.run()
