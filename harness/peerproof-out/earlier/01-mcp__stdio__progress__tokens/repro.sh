#!/bin/sh
# mcp/stdio/progress/tokens: clause MCP-TOL-07, member_type
# 
# expected: `content` is an array
# got:      tool "now": "now"
# 
# The conversation depends on replies, time, signatures, files or processes, so peerproof carries it out again.
here=$(cd "$(dirname "$0")" && pwd) || exit 2
cd /tmp/wt/mcp/harness || exit 2
exec "${PEERPROOF:-/tmp/pp-b}" replay --live "$here/transcript.ndjson" -- python3 /tmp/mcpsrv/good.py content_string
