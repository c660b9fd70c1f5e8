//! Reading requests: strict JSON without a tree, with one, and framing.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use peerproof_benches::workload;
use peerproof_engine::data::json::{DecodeLimits, decode};
use peerproof_reference::frame::LineReader;
use peerproof_reference::json::{Policy, Scanner, Value};

fn texts() -> [(&'static str, Vec<u8>); 3] {
    let trimmed = |mut line: Vec<u8>| {
        line.pop();
        line
    };
    [
        ("64 B", trimmed(workload::ping())),
        ("1 MB string", trimmed(workload::one_string(1_000_000))),
        ("1 MB records", workload::records_input(1_000_000).into_bytes()),
    ]
}

fn readers(c: &mut Criterion) {
    for (name, text) in texts() {
        let mut group = c.benchmark_group(format!("decode/{name}"));
        group.throughput(Throughput::Bytes(text.len() as u64));
        let mut scanner = Scanner::new(64);
        group.bench_function("scan", |b| b.iter(|| scanner.scan(black_box(&text)).is_ok()));
        group.bench_function("reference tree", |b| {
            b.iter(|| Value::parse(black_box(&text), 64, &Policy::default()).is_ok());
        });
        group.bench_function("harness tree", |b| {
            b.iter(|| decode(black_box(&text), &DecodeLimits::default()).is_ok());
        });
        group.bench_function("serde_json IgnoredAny", |b| {
            b.iter(|| serde_json::from_slice::<serde::de::IgnoredAny>(black_box(&text)).is_ok());
        });
        group.finish();
    }
}

fn frames(c: &mut Criterion) {
    let mut group = c.benchmark_group("decode/frames");
    for (name, line) in [("64 B", workload::ping()), ("1 MB", workload::one_string(1_000_000))] {
        let stream = line.repeat(8_000_000 / line.len());
        group.throughput(Throughput::Bytes(stream.len() as u64));
        group.bench_function(format!("lines of {name} in blocks of 64 KiB"), |b| {
            b.iter(|| {
                let mut reader = LineReader::new(10 << 20);
                let mut lines = 0;
                for mut block in stream.chunks(64 << 10) {
                    while reader.next(&mut block).is_some() {
                        lines += 1;
                    }
                }
                lines
            });
        });
    }
    group.finish();
}

criterion_group!(benches, readers, frames);
criterion_main!(benches);
