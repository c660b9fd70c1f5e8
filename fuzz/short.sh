#!/usr/bin/env bash
# Runs every fuzz target for some seconds each (default 20) on stable Rust, without a sanitizer; as many of them at a time
# as there are processors.
#
#   fuzz/short.sh [SECONDS] [ARGUMENT…]
#
# Further arguments go to `cargo fuzz run`: with --dev everything is built much sooner and runs slower.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" != --target ]; then
    seconds="${1:-20}"
    shift || true
    cargo fuzz build --sanitizer none "$@"
    status=0
    cargo fuzz list | xargs -I{} -P "$(getconf _NPROCESSORS_ONLN)" "$0" --target {} "$seconds" "$@" || status=1
    exit "$status"
fi

target=$2 seconds=$3
shift 3
inputs=$(fuzz/inputs.sh "$target")
mkdir -p "fuzz/corpus/$target"
log="fuzz/corpus/$target.log"
status=0
# shellcheck disable=SC2086 # two folders
cargo fuzz run --sanitizer none "$@" "$target" "fuzz/corpus/$target" $inputs \
    -- -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
    >"$log" 2>&1 || status=$?
said=$(grep -E "stat::number_of_executed_units|stat::average_exec_per_sec|messages/s|SUMMARY|panicked|ERROR|Test unit written" \
    "$log" || true)
printf -- '-- %s\n%s\n' "$target" "$said"
if [ "$status" -ne 0 ]; then
    echo "-- $target ended with status $status; all it said is in $log"
    exit 1
fi
