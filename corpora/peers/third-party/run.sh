#!/usr/bin/env bash
# Installs every library and checks it against what JSON-RPC 2.0 says: each failure has to be in <name>-expected.toml,
# and each that is there has to show. Arguments: the peerproof binary [target/release/peerproof], names of peers [all].
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
peerproof="$(realpath "${1:-$here/../../../target/release/peerproof}")"
shift || true
cd "$here"

peers=("$@")
[ $# -gt 0 ] || peers=(jayson jsonrpclib-pelix jsonrpcserver jsonrpsee)
passed=0 failed=0 skipped=0
for peer in "${peers[@]}"; do
    if [ "$peer" = jayson ] && ! { command -v node && command -v npm; } >/dev/null; then
        echo "SKIPPED $peer: it needs node and npm, which are not on the PATH; nothing is known about it"
        skipped=$((skipped + 1))
        continue
    fi
    if ! ./install.sh "$peer"; then
        echo "SKIPPED $peer: it cannot be installed here, see above; nothing is known about it"
        skipped=$((skipped + 1))
        continue
    fi
    status=0
    "$peerproof" check --config "$peer.toml" --expect "$peer-expected.toml" --out "target/out/$peer" \
        --shrink-time 0 --format plain >"target/$peer.txt" 2>&1 || status=$?
    if [ "$status" = 0 ]; then
        echo "ok $peer: $(tail -n 1 "target/$peer.txt")"
        passed=$((passed + 1))
    else
        cat "target/$peer.txt"
        echo "NOT AS EXPECTED $peer: exit status $status"
        failed=$((failed + 1))
    fi
done
echo "peers: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
