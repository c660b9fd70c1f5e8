// An MCP server on FastMCP for TypeScript (npm `fastmcp`).
import { setTimeout as pause } from "node:timers/promises";
import { FastMCP } from "fastmcp";
import { z } from "zod";

const server = new FastMCP({ name: "fastmcp-typescript", version: "1.0.0" });
const annotations = { readOnlyHint: true };

server.addTool({
  name: "echo",
  description: "Gives the text back.",
  parameters: z.object({ text: z.string() }),
  annotations,
  execute: async ({ text }) => text,
});
server.addTool({
  name: "wait",
  description: "Waits, then gives the text back.",
  parameters: z.object({ ms: z.number().int(), text: z.string().optional() }),
  annotations,
  execute: async ({ ms, text }) => {
    await pause(ms);
    return text ?? "";
  },
});
server.addResource({
  uri: "notes://one",
  name: "note",
  mimeType: "text/plain",
  load: async () => ({ text: "one" }),
});
server.addPrompt({
  name: "greet",
  description: "A greeting.",
  arguments: [{ name: "name", required: true }],
  load: async ({ name }) => `Greet ${name}.`,
});

server.start({ transportType: "stdio" });
