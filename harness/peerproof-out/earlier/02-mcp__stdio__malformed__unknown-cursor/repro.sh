#!/bin/sh
# mcp/stdio/malformed/unknown-cursor: clause MCP-LST-09, listed_twice
# 
# expected: each `uriTemplate` once in its list
# got:      resourceTemplate "mem://{name}": "mem://{name}"
# 
# The conversation depends on replies, time, signatures, files or processes, so peerproof carries it out again.
here=$(cd "$(dirname "$0")" && pwd) || exit 2
cd /tmp/wt/mcp/harness || exit 2
exec "${PEERPROOF:-/tmp/pp-b}" replay --live "$here/transcript.ndjson" -- python3 /tmp/mcpsrv/good.py content_string
