import { setTimeout as pause } from "node:timers/promises";
import { MCPTool } from "mcp-framework";
import { z } from "../zod.js";

/** Waits, then gives the text back. */
export default class WaitTool extends MCPTool {
  name = "wait";
  description = "Waits, then gives the text back.";
  schema = z.object({
    ms: z.number().int().describe("The time."),
    text: z.string().optional().describe("The text."),
  });
  annotations = { readOnlyHint: true };

  async execute({ ms, text }) {
    await pause(ms);
    return text ?? "";
  }
}
