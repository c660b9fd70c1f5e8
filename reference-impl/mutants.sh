#!/usr/bin/env bash
# Mutates the source of the reference toolhost and judges every mutant from outside, by the checks of a harness that is
# built first from the code as it is. Arguments go to cargo-mutants, such as `--shard 0/4`, `--file FILE`, `--in-place`.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --quiet -p peerproof --example judge
JUDGE="$PWD/target/release/examples/judge"
export JUDGE
# Hundreds of small builds and of short runs: what counts is how soon both are done.
export CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0
exec cargo mutants --package peerproof-reference --baseline skip --timeout 120 "$@"
