//! Blocks of 64 KiB: the reference's parser, which validates the patch and keeps it as text, and the harness's parser,
//! which builds a tree.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use peerproof_benches::pick;
use peerproof_policy_driver::block::parse;

fn blocks(c: &mut Criterion) {
    for (name, text) in [("one string", pick::one_string()), ("records", pick::records())] {
        let mut group = c.benchmark_group(format!("policy_block/{name}"));
        group.throughput(Throughput::Bytes(text.len() as u64));
        let mut reader = pick::reader();
        group.bench_function("reference", |b| b.iter(|| reader.read(black_box(&text)).is_ok()));
        group.bench_function("harness", |b| b.iter(|| parse(black_box(&text)).is_ok()));
        group.finish();
    }
}

criterion_group!(benches, blocks);
criterion_main!(benches);
