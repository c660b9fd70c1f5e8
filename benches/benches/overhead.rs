//! Overhead of the harness per exchange: transcript and judge over a bare loop.

use criterion::{Criterion, Throughput, criterion_group};
use peerproof_benches::engine::Engine;
use peerproof_benches::pipe::Pipe;
use peerproof_benches::{SERVE, peer_or_pinned, played, workload};

const EXCHANGES: u32 = 1000;

fn overhead(c: &mut Criterion) {
    let argv = played(SERVE).expect("this program has a path");
    let mut group = c.benchmark_group("overhead");
    group.sample_size(20).throughput(Throughput::Elements(EXCHANGES.into()));
    let line = workload::ping();
    group.bench_function("bare loop with a child", |b| {
        b.iter(|| {
            let mut pipe = Pipe::start(&argv).expect("the peer starts");
            pipe.exchange(&line, EXCHANGES).expect("the peer answers")
        });
    });
    for (name, command) in [("checked conversation with a child", &argv[..]), ("checked, in process", &[])] {
        let engine = Engine::new(command).expect("an engine");
        let plan = engine.ping_pong(EXCHANGES);
        group.bench_function(name, |b| b.iter(|| engine.check(&plan).expect("the reference is clean")));
    }
    group.finish();
}

criterion_group!(benches, overhead);

fn main() {
    peer_or_pinned();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
