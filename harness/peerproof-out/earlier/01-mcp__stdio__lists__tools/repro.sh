#!/bin/sh
# mcp/stdio/lists/tools: clause MCP-LST-08, tool_name
# 
# expected: 1 to 128 letters, digits, `_`, `-` and `.`
# got:      tool "now is it": "now is it"
# 
# The conversation depends on replies, time, signatures, files or processes, so peerproof carries it out again.
here=$(cd "$(dirname "$0")" && pwd) || exit 2
cd /tmp/wt/mcp/harness || exit 2
exec "${PEERPROOF:-/tmp/pp-b}" replay --live "$here/transcript.ndjson" -- python3 /tmp/mcpsrv/good.py bad_tool_name
