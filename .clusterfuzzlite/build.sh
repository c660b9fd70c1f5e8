#!/bin/bash -eu
# Builds every fuzz target and packs the seed inputs that it starts from. OSS-Fuzz and ClusterFuzzLite set OUT and SRC.
cd "$SRC/peerproof"
cargo fuzz build -O
for target in $(cargo fuzz list); do
    cp "fuzz/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
    inputs=$(fuzz/inputs.sh "$target")
    if [ -n "$inputs" ]; then
        find $inputs -type f | zip -q -j@ "$OUT/${target}_seed_corpus.zip"
    fi
    printf '[libfuzzer]\nmax_len = 4096\ntimeout = 10\n' >"$OUT/$target.options"
done
