#!/usr/bin/env bash
# Runs every fuzz target for some seconds each (default 20) on stable Rust, without a sanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds="${1:-20}"
failed=0
for target in $(cargo fuzz list); do
    mkdir -p "fuzz/corpus/$target"
    # A target is called after its boundary.
    case "$target" in
        json_rpc_*) boundary=json_rpc ;;
        policy_*) boundary=policy_driver ;;
        *) boundary=toolhost ;;
    esac
    echo "-- $target"
    status=0
    cargo fuzz run --sanitizer none "$target" "fuzz/corpus/$target" \
        "corpora/$boundary/seeds" "corpora/$boundary/conversations" \
        -- -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
        >"fuzz/corpus/$target.log" 2>&1 || status=$?
    grep -E "stat::number_of_executed_units|stat::average_exec_per_sec|messages/s|SUMMARY|panicked|ERROR|Test unit written" \
        "fuzz/corpus/$target.log" || true
    if [ "$status" -ne 0 ]; then
        echo "-- $target ended with status $status; all it said is in fuzz/corpus/$target.log"
        failed=1
    fi
done
exit "$failed"
