#!/bin/sh
# mcp/stdio/capabilities/undeclared: clause MCP-CAP-02, accepted
# 
# expected: error -32601 with id 2
# got:      {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"echo","description":"Echoes","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":…d":["sum"]}},{"name":"sleep","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"ms":{"type":"integer"},"text":{"type":"string"}},"required":["ms"]}}],"nextCursor":"3"}}
# 
# The conversation depends on replies, time, signatures, files or processes, so peerproof carries it out again.
here=$(cd "$(dirname "$0")" && pwd) || exit 2
cd /tmp/wt/mcp/harness || exit 2
exec "${PEERPROOF:-/tmp/pp-b}" replay --live "$here/transcript.ndjson" -- python3 /tmp/mcpsrv/good.py undeclared_tools
