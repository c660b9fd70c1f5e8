//! JSON-RPC reference: single calls, batches and signed messages in this process; calls to a child on the same
//! processor, compared with a copying peer; and the cost of judging a conversation.

use criterion::{Criterion, Throughput, criterion_group};
use peerproof::table;
use peerproof_benches::pipe::Pipe;
use peerproof_benches::rpc::{self, KEY, UNIX_S};
use peerproof_benches::{ECHO, RPC, peer_or_pinned, played};
use peerproof_engine::data::transcript::Transcript;
use peerproof_reference::json_rpc::{AuthConfig, Config, HmacVerifier, Verifier as _, machine};
use peerproof_reference::limits::Limits;
use peerproof_reference::machine::{Event, Machine as _};

fn in_process(c: &mut Criterion) {
    let mut group = c.benchmark_group("json_rpc/in process");
    for (name, line) in [
        ("64 B", rpc::ping()),
        ("batch of 100", rpc::batch(100)),
        ("1 MB string", rpc::one_string(999_000)),
        ("validate_code, 10 kB", rpc::validate(10_000)),
    ] {
        let mut peer = machine(Config::default());
        let mut actions = Vec::new();
        group.throughput(Throughput::Bytes(line.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                peer.handle(Event::Stdin(&line), 0, &mut actions);
                assert_eq!(actions.drain(..).count(), 1, "one write of one answer");
            });
        });
    }
    group.finish();
}

fn signatures(c: &mut Criterion) {
    let mut group = c.benchmark_group("json_rpc/verify");
    let config = AuthConfig { key: KEY.to_vec(), key_id: None };
    let verifier = HmacVerifier::new(config, &Limits::default());
    for (name, bytes) in [("200 B", 0), ("100 kB", 100_000)] {
        let message = rpc::signed(bytes);
        group.throughput(Throughput::Bytes(message.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| assert!(verifier.verify(&message, UNIX_S).is_some(), "it verifies"));
        });
    }
    group.finish();
}

fn child(c: &mut Criterion) {
    for (peer, words) in [("echo peer", ECHO), ("reference", RPC)] {
        let argv = played(words).expect("this program has a path");
        let mut group = c.benchmark_group(format!("json_rpc/{peer}"));
        for (name, line) in [("64 B", rpc::ping()), ("1 MB string", rpc::one_string(999_000))] {
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
        let (mut pipe, line) = (Pipe::start(&argv).expect("the peer starts"), rpc::ping());
        group.throughput(Throughput::Elements(64));
        group.bench_function("64 B, window 64", |b| {
            b.iter(|| pipe.pipelined(&line, 64, 1).expect("the peer answers"));
        });
        group.finish();
    }
}

fn judgement(c: &mut Criterion) {
    let boundary = table::find("json_rpc").expect("the boundary");
    let mut group = c.benchmark_group("json_rpc/judge");
    for (name, calls, windows) in
        [("1,000 calls, one by one", 1_000, 1_000), ("1,000 calls at once", 1_000, 1)]
    {
        let transcript: Transcript = rpc::recorded(calls, windows);
        group.throughput(Throughput::Elements(calls as u64));
        group.bench_function(name, |b| {
            b.iter(|| assert!(boundary.judge(&transcript).findings.is_empty(), "the reference is clean"));
        });
    }
    group.finish();
}

criterion_group!(benches, in_process, signatures, child, judgement);

fn main() {
    peer_or_pinned();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
