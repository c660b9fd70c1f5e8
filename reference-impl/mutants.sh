#!/usr/bin/env bash
# Mutates the source of the reference toolhost and judges every mutant from outside, by the checks of a peerproof that
# is built first from the code as it is. Arguments go to cargo-mutants, such as `--shard 0/4` or `--file FILE`.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --quiet -p peerproof
SUITE="$PWD/target/release/peerproof"
export SUITE
# Hundreds of small builds: what counts is how soon one is done.
export CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=1
exec cargo mutants --package peerproof-reference --baseline skip --timeout 120 --jobs 1 "$@"
