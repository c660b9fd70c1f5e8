// mcp-framework accepts schemas of its own copy of zod 3 alone; the other servers here use zod 4.
export { z } from "../../node_modules/mcp-framework/node_modules/zod/index.js";
