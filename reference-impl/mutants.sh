#!/usr/bin/env bash
# Mutates the source of the reference peers of a boundary and judges every mutant.
#
#   reference-impl/mutants.sh BOUNDARY [LIST.TXT] [ARGUMENT…]
#   reference-impl/mutants.sh BOUNDARY own-tests [LIST.TXT] [ARGUMENT…]
#
# The first form judges from outside, by the checks of a harness that is built first from the code as it is. The second
# asks the reference's own tests, which take a second or two a mutant: what a method answers, beyond its shape, is no
# matter of a contract.
#
# LIST.TXT has the names of the mutants that are asked about, such as the `mutants.out/missed.txt` of the other form; all
# are without it. Arguments go to cargo-mutants, such as `--shard 0/4`, `--in-place`, or `--file FILE` for less than all
# of the boundary. Mutants about which nothing can be said are among the missed: `grep -l ^undecided mutants.out/log/*`
# names them.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    echo "usage: reference-impl/mutants.sh BOUNDARY [own-tests] [LIST.TXT] [ARGUMENT...]" >&2
    exit 2
}

# Hundreds of small builds and of short runs: what counts is how soon both are done.
export CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0

boundary=${1:-}
[ -n "$boundary" ] && [ -d "reference-impl/src/$boundary" ] || usage
shift

by=checks
if [ "${1:-}" = own-tests ]; then
    by=own-tests
    shift
fi
names=()
case ${1:-} in
'' | -*) ;;
*)
    [ -r "$1" ] || { echo "the list of mutants $1 cannot be read" >&2; exit 2; }
    # cargo-mutants 27.1 adds each "delete field" of the files, whatever the names say.
    while IFS= read -r name; do names+=(--re "$name"); done < <(sed 's/[][\.*^$+?(){}|]/\\&/g; s/^/^/; s/$/$/' "$1")
    shift
    ;;
esac

files=(--file "reference-impl/src/$boundary*.rs" --file "reference-impl/src/$boundary*/**/*.rs")
for argument in "$@"; do
    case $argument in
    -f | -f* | --file | --file=*) files=() ;;
    esac
done
chosen=(--package peerproof-reference --baseline skip ${files[@]+"${files[@]}"} ${names[@]+"${names[@]}"} "$@")

if [ $by = own-tests ]; then
    built=(--config=profile.dev.package.peerproof-reference.opt-level=0 --lib --tests)
    cargo test --quiet -p peerproof-reference --target-dir target/mutants "${built[@]}"
    exec cargo mutants --no-config --test-package peerproof-reference --timeout 60 "${built[@]/#/--cargo-arg=}" \
        --exclude 'reference-impl/src/*/mutants*' --exclude 'reference-impl/src/*/mutants/**' "${chosen[@]}"
fi

cargo build --release --quiet -p peerproof --features reference --example judge
JUDGE="$PWD/target/release/examples/judge"
JUDGE_BOUNDARY=$boundary
export JUDGE JUDGE_BOUNDARY
# The reference without a mutant has to pass, or every mutant would count as caught. This run also writes down which
# checks decide nothing about it: a mutant that keeps one more from deciding, and breaks nothing, is undecided.
JUDGE_UNDECIDED=$(mktemp -d)/undecided
export JUDGE_UNDECIDED
cargo test --quiet -p peerproof-reference --test black_box --target-dir target/mutants -- --ignored
[ -e "$JUDGE_UNDECIDED" ] || { echo "the reference without a mutant cannot be judged here" >&2; exit 1; }
# Where all peers are processes, one that nothing is found about takes a minute or two.
exec cargo mutants --timeout 400 "${chosen[@]}"
