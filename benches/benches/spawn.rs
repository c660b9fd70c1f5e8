//! Time from the start of a peer to its first reply and its end.

use criterion::{Criterion, criterion_group};
use peerproof_benches::engine::Engine;
use peerproof_benches::pipe::Pipe;
use peerproof_benches::{ECHO, SERVE, peer_or_pinned, played, workload};

fn spawn(c: &mut Criterion) {
    let mut group = c.benchmark_group("spawn");
    group.sample_size(50);
    let line = workload::ping();
    for (name, words) in [("echo peer", ECHO), ("reference", SERVE)] {
        let argv = played(words).expect("this program has a path");
        group.bench_function(format!("{name}, first reply"), |b| {
            b.iter(|| {
                let mut pipe = Pipe::start(&argv).expect("the peer starts");
                pipe.exchange(&line, 1).expect("the peer answers")
            });
        });
    }
    let engine = Engine::new(&played(SERVE).expect("this program has a path")).expect("an engine");
    let plan = engine.ping_pong(1);
    group.bench_function("reference, checked conversation of one exchange", |b| {
        b.iter(|| engine.check(&plan).expect("the reference is clean"));
    });
    group.finish();
}

criterion_group!(benches, spawn);

fn main() {
    peer_or_pinned();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
