//! One request and its reply: in this process, and with a child on the same processor.

use criterion::{Criterion, Throughput, criterion_group};
use peerproof_benches::pipe::Pipe;
use peerproof_benches::{ECHO, SERVE, peer_or_pinned, played, workload};
use peerproof_reference::machine::{Event, Machine as _};
use peerproof_reference::toolhost::{Config, Mode, machine};

fn requests() -> [(&'static str, Vec<u8>); 3] {
    [
        ("64 B", workload::ping()),
        ("1 MB string", workload::one_string(1_000_000)),
        ("1 MB records", workload::records(1_000_000)),
    ]
}

fn in_process(c: &mut Criterion) {
    let mut group = c.benchmark_group("exchange/in process");
    for (name, line) in requests() {
        let mut peer = machine(Config::new(Mode::Serve));
        let mut actions = Vec::new();
        group.throughput(Throughput::Bytes(line.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                peer.handle(Event::Stdin(&line), 0, &mut actions);
                assert_eq!(actions.drain(..).count(), 1, "one write of one reply");
            });
        });
    }
    group.finish();
}

fn child(c: &mut Criterion) {
    for (peer, words) in [("echo peer", ECHO), ("reference", SERVE)] {
        let argv = played(words).expect("this program has a path");
        let mut group = c.benchmark_group(format!("exchange/{peer}"));
        for (name, line) in requests() {
            let mut pipe = Pipe::start(&argv).expect("the peer starts");
            group.throughput(Throughput::Bytes(line.len() as u64));
            group.bench_function(name, |b| {
                b.iter(|| {
                    if line.len() > 4096 {
                        pipe.large(&line).map(drop)
                    } else {
                        pipe.exchange(&line, 1).map(drop)
                    }
                    .expect("the peer answers");
                });
            });
        }
        let (mut pipe, line) = (Pipe::start(&argv).expect("the peer starts"), workload::ping());
        group.throughput(Throughput::Elements(64));
        group.bench_function("64 B, window 64", |b| {
            b.iter(|| pipe.pipelined(&line, 64, 1).expect("the peer answers"));
        });
        group.finish();
    }
}

criterion_group!(benches, in_process, child);

fn main() {
    peer_or_pinned();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
