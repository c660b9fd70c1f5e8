#!/bin/sh
# mcp/stdio/tools/invalid-arguments: clause MCP-TOL-05, accepted
# 
# expected: a result with id 2 and `isError: true`
# got:      {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"None"}]}}
# 
# The conversation depends on replies, time, signatures, files or processes, so peerproof carries it out again.
here=$(cd "$(dirname "$0")" && pwd) || exit 2
cd /tmp/wt/mcp/harness || exit 2
exec "${PEERPROOF:-/tmp/pp-b}" replay --live "$here/transcript.ndjson" -- python3 /tmp/mcpsrv/good.py no_validation
