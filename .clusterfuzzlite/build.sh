#!/bin/bash -eu
# Builds every fuzz target and packs the seed inputs that those of one boundary share. OSS-Fuzz and ClusterFuzzLite set OUT and SRC.
cd "$SRC/peerproof"
cargo fuzz build -O
seeds="$(mktemp -d)"
for boundary in toolhost json_rpc policy_driver; do
    find "corpora/$boundary/seeds" "corpora/$boundary/conversations" -type f | zip -q -j@ "$seeds/$boundary.zip"
done
for target in $(cargo fuzz list); do
    cp "fuzz/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
    case "$target" in
        json_rpc_*) boundary=json_rpc ;;
        policy_*) boundary=policy_driver ;;
        *) boundary=toolhost ;;
    esac
    cp "$seeds/$boundary.zip" "$OUT/${target}_seed_corpus.zip"
    printf '[libfuzzer]\nmax_len = 4096\ntimeout = 10\n' >"$OUT/$target.options"
done
