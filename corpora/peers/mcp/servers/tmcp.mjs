// An MCP server on tmcp, a TypeScript library with a protocol core of its own.
import { setTimeout as pause } from "node:timers/promises";
import { ZodJsonSchemaAdapter } from "@tmcp/adapter-zod";
import { StdioTransport } from "@tmcp/transport-stdio";
import { McpServer } from "tmcp";
import { z } from "zod";

const server = new McpServer(
  { name: "tmcp", version: "1.0.0", description: "A peer." },
  { adapter: new ZodJsonSchemaAdapter(), capabilities: { tools: {}, prompts: {}, resources: {} } },
);
const annotations = { readOnlyHint: true };
const text = (value) => ({ content: [{ type: "text", text: value }] });

server.tool(
  { name: "echo", description: "Gives the text back.", schema: z.object({ text: z.string() }), annotations },
  async (given) => text(given.text),
);
server.tool(
  {
    name: "wait",
    description: "Waits, then gives the text back.",
    schema: z.object({ ms: z.number().int(), text: z.string().optional() }),
    annotations,
  },
  async (given) => {
    await pause(given.ms);
    return text(given.text ?? "");
  },
);
server.resource({ name: "note", description: "A note.", uri: "notes://one" }, async (uri) => ({
  contents: [{ uri, text: "one" }],
}));
server.prompt(
  { name: "greet", description: "A greeting.", schema: z.object({ name: z.string() }) },
  async ({ name }) => ({ messages: [{ role: "user", content: { type: "text", text: `Greet ${name}.` } }] }),
);

new StdioTransport(server).listen();
