#!/bin/sh
# mcp/stdio/opening/request-before-initialized: clause MCP-LST-01, member_missing
# 
# expected: `inputSchema` is an object
# got:      tool "echo": not in {"name":"echo","description":"Echoes","annotations":{"readOnlyHint":true}}
# 
# The conversation depends on replies, time, signatures, files or processes, so peerproof carries it out again.
here=$(cd "$(dirname "$0")" && pwd) || exit 2
cd /tmp/wt/mcp/harness || exit 2
exec "${PEERPROOF:-/tmp/pp-b}" replay --live "$here/transcript.ndjson" -- python3 /tmp/mcpsrv/good.py no_input_schema
