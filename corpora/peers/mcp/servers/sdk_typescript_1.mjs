// An MCP server on version 1 of the TypeScript SDK (`@modelcontextprotocol/sdk`).
import { setTimeout as pause } from "node:timers/promises";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "sdk-typescript-1", version: "1.0.0" });
const annotations = { readOnlyHint: true };
const text = (value) => ({ content: [{ type: "text", text: value }] });

server.registerTool(
  "echo",
  { description: "Gives the text back.", inputSchema: { text: z.string() }, annotations },
  async (given) => text(given.text),
);
server.registerTool(
  "wait",
  {
    description: "Waits, then gives the text back.",
    inputSchema: { ms: z.number().int(), text: z.string().optional() },
    annotations,
  },
  async (given) => {
    await pause(given.ms);
    return text(given.text ?? "");
  },
);
server.registerResource("note", "notes://one", { description: "A note." }, async (uri) => ({
  contents: [{ uri: uri.href, text: "one" }],
}));
server.registerPrompt("greet", { description: "A greeting.", argsSchema: { name: z.string() } }, ({ name }) => ({
  messages: [{ role: "user", content: { type: "text", text: `Greet ${name}.` } }],
}));

await server.connect(new StdioServerTransport());
