#!/bin/bash -eu
# Builds every fuzz target and packs the seed inputs that they share. OSS-Fuzz and ClusterFuzzLite set OUT and SRC.
cd "$SRC/peerproof"
cargo fuzz build -O
seeds="$(mktemp -d)/seeds.zip"
find corpora/toolhost/seeds corpora/toolhost/conversations -type f | zip -q -j@ "$seeds"
for target in $(cargo fuzz list); do
    cp "fuzz/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
    cp "$seeds" "$OUT/${target}_seed_corpus.zip"
    printf '[libfuzzer]\nmax_len = 4096\ntimeout = 10\n' >"$OUT/$target.options"
done
