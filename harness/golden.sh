#!/bin/sh
# Writes the golden records, what every check says of the reference peers, of their mutants and of the example peers, into a
# folder: the checked-in one without an argument. Needs python3 and `cargo build --release`, or another binary in PEERPROOF.
#
#     harness/golden.sh                                                # makes them anew
#     harness/golden.sh --again                                        # writes `~` where the mutants' lines differ this time
#     harness/golden.sh /tmp/now && diff -r harness/golden /tmp/now    # shows what a change changed, `~` aside
set -eu
cd "$(dirname "$0")/.."
peerproof=${PEERPROOF:-target/release/peerproof}
if [ "${1:-}" = --again ]; then
    exec "$peerproof" selftest --mutants --against harness/golden --unsettle
fi
out=${1:-harness/golden}
mkdir -p "$out"
# The record is of what the checks say, not of whether that proves the suite.
"$peerproof" selftest --mutants --golden "$out" >/dev/null || echo "selftest: exit status $?"
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
