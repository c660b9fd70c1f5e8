#!/bin/sh
# Names the folders of inputs that a fuzz target of bytes starts from: those of the boundary that it is called after. A
# target that takes structured inputs starts from nothing, and names none.
#
#   fuzz/inputs.sh TARGET
set -eu
target=$1
cd "$(dirname "$0")/.."
for clauses in corpora/*/clauses.toml; do
    boundary=$(basename "$(dirname "$clauses")")
    case $target in
    "$boundary"_*)
        if grep -qF '|data: &[u8]|' "fuzz/fuzz_targets/$target.rs"; then
            echo "corpora/$boundary/seeds" "corpora/$boundary/conversations"
        fi
        exit
        ;;
    esac
done
echo "fuzz target $target: call it after a boundary, such as ${boundary}_$target" >&2
exit 1
