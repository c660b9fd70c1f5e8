#!/bin/sh
# Writes the golden record, what every check says of the reference peers, of their mutants and of the example peers, into
# a folder: the checked-in one without an argument. Needs `cargo build --release` and python3.
#
#     harness/golden.sh                                                    # makes it anew
#     harness/golden.sh /tmp/now && diff -r harness/golden /tmp/now    # shows what a change changed, `~` aside
set -eu
cd "$(dirname "$0")/.."
out=${1:-harness/golden}
peerproof=target/release/peerproof
mkdir -p "$out"
# The record is of what the checks say, not of whether that proves the suite.
"$peerproof" selftest --golden "$out" >/dev/null || echo "selftest: exit status $?"
scratch=$(mktemp -d)
# The interpreter itself, not what a version manager puts in its place.
PATH=$(python3 -c 'import os, sys; print(os.path.dirname(os.path.realpath(sys.executable)))'):$PATH
trap 'rm -rf "$scratch"' EXIT
for config in corpora/peers/python/*.toml; do
    name=$(basename "$config" .toml)
    # What fails is for the record to say.
    "$peerproof" check --config "$config" --format plain --shrink-time 0 --out "$scratch/$name" \
        --report "verdicts=$out/python-$name.txt" >/dev/null || echo "$name: exit status $?"
done
