import { MCPTool } from "mcp-framework";
import { z } from "../zod.js";

/** Gives the text back. */
export default class EchoTool extends MCPTool {
  name = "echo";
  description = "Gives the text back.";
  schema = z.object({ text: z.string().describe("The text.") });
  annotations = { readOnlyHint: true };

  async execute({ text }) {
    return text;
  }
}
