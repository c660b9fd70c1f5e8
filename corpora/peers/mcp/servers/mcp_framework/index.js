// An MCP server on mcp-framework, which finds its tools in the folder `tools`.
import { MCPServer } from "mcp-framework";

new MCPServer({ name: "mcp-framework", version: "1.0.0", basePath: import.meta.dirname }).start();
