#!/bin/bash -eu
# Builds every fuzz target and packs the seed inputs of its boundary. OSS-Fuzz and ClusterFuzzLite set OUT and SRC.
cd "$SRC/peerproof"
cargo fuzz build -O
for target in $(cargo fuzz list); do
    cp "fuzz/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
    inputs=$(fuzz/inputs.sh "$target")
    find $inputs -type f | zip -q -j@ "$OUT/${target}_seed_corpus.zip"
    printf '[libfuzzer]\nmax_len = 4096\ntimeout = 10\n' >"$OUT/$target.options"
done
