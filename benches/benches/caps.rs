//! Requests of all sizes up to the cap of a line, at it and one byte over it.

use criterion::{Criterion, Throughput, criterion_group};
use peerproof_benches::pipe::Pipe;
use peerproof_benches::{ECHO, SERVE, peer_or_pinned, played, workload};
use peerproof_reference::limits::Limits;

fn caps(c: &mut Criterion) {
    let limit = Limits::default().stdin_bytes_max;
    let sizes = [1 << 10, 16 << 10, 256 << 10, 1 << 20, 4 << 20, limit, limit + 1];
    for (peer, words) in [("echo peer", ECHO), ("reference", SERVE)] {
        let argv = played(words).expect("this program has a path");
        let mut group = c.benchmark_group(format!("caps/{peer}"));
        group.sample_size(20);
        for bytes in sizes {
            let line = workload::padded(bytes);
            let mut pipe = Pipe::start(&argv).expect("the peer starts");
            group.throughput(Throughput::Bytes(bytes as u64));
            group.bench_function(format!("{bytes} B"), |b| {
                b.iter(|| pipe.large(&line).expect("the peer answers"));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, caps);

fn main() {
    peer_or_pinned();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
