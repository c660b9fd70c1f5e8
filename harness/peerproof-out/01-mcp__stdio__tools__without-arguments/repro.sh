#!/bin/sh
# mcp/stdio/tools/without-arguments: clause MCP-CAP-05, undeclared_request
# 
# expected: no request for `roots`, which the client does not declare
# got:      "roots/list"
# 
# The conversation depends on replies, time, signatures, files or processes, so peerproof carries it out again.
here=$(cd "$(dirname "$0")" && pwd) || exit 2
cd /tmp/wt/mcp/harness || exit 2
exec "${PEERPROOF:-/tmp/pp-b}" replay --live "$here/transcript.ndjson" -- python3 /tmp/mcpsrv/good.py roots_undeclared
