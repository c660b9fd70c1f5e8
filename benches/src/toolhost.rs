//! Figures of the toolhost boundary.

use std::time::{Duration, Instant};

use peerproof_benches::engine::Engine;
use peerproof_benches::error::FigureError;
use peerproof_benches::pair::{Pair, start, turns};
use peerproof_benches::pipe::Pipe;
use peerproof_benches::spread::Spread;
use peerproof_benches::{SERVE, memory_hwm_bytes, pin, played, unpin, workload};
use peerproof_engine::run::fuzz::Status;
use peerproof_played::input::drawn;
use peerproof_played::toolhost::properties;
use peerproof_reference::machine::{Event, Machine as _};
use peerproof_reference::toolhost::{Config, Mode, machine};
use rustix::time::{ClockId, clock_gettime};
use serde::de::IgnoredAny;

use crate::LARGE_BYTES;

pub(crate) fn pingpong() -> Result<(), FigureError> {
    crate::pingpong("pingpong", SERVE, &workload::ping())
}

pub(crate) fn pipelined() -> Result<(), FigureError> {
    let (mut one, mut many, line) = (start(SERVE)?, start(SERVE)?, workload::ping());
    let mut pair = Pair::default();
    for round in 0..500 {
        pair.add(turns(round, || one.exchange(&line, 640), || many.pipelined(&line, 64, 10))?);
    }
    println!(
        "pipelined: window 64 over ping-pong, 64 B, one processor: {}; undisturbed {:.3}",
        pair.ratio,
        pair.best()
    );
    Ok(())
}

pub(crate) fn large() -> Result<(), FigureError> {
    crate::large("large", SERVE, "one string", &workload::one_string(LARGE_BYTES))?;
    crate::large("large", SERVE, "records", &workload::records(LARGE_BYTES))
}

pub(crate) fn decode() -> Result<(), FigureError> {
    let input = workload::records_input(LARGE_BYTES);
    let line = workload::records(LARGE_BYTES);
    let mut peer = machine(Config::new(Mode::Serve));
    let mut actions = Vec::new();
    let mut pair = Pair::default();
    let mut refused = false;
    for round in 0..300 {
        let answer = || {
            let start = Instant::now();
            peer.handle(Event::Stdin(&line), 0, &mut actions);
            refused |= actions.len() != 1;
            actions.clear();
            Ok(start.elapsed())
        };
        let ignore = || {
            let start = Instant::now();
            serde_json::from_str::<IgnoredAny>(std::hint::black_box(&input))?;
            Ok(start.elapsed())
        };
        pair.add(turns(round, answer, ignore)?);
    }
    if refused {
        return Err(FigureError::Unfit("the request was not answered at once".to_owned()));
    }
    println!(
        "decode: request decoded and answered in-process, over an IgnoredAny pass over its input, records: {}; \
         undisturbed {:.3} ({:.0} over {:.0} us)",
        pair.ratio,
        pair.best(),
        pair.first.quantile(0.02),
        pair.second.quantile(0.02)
    );
    Ok(())
}

pub(crate) fn refusal() -> Result<(), FigureError> {
    const LINE_BYTES: usize = 100_000_000;
    let mut serve = start(SERVE)?;
    let gone = |error| FigureError::of("the peer is gone")(error);
    serve.exchange(&workload::ping(), 1).map_err(gone)?;
    let idle = memory_hwm_bytes(serve.pid()).unwrap_or(0);
    let block = vec![b'x'; 1 << 20];
    let mut left = LINE_BYTES;
    while left > 0 {
        let bytes = left.min(block.len());
        serve.write(block.get(..bytes).unwrap_or_default()).map_err(gone)?;
        left -= bytes;
    }
    serve.write(b"\n").map_err(gone)?;
    serve.replies(1).map_err(gone)?;
    serve.exchange(&workload::ping(), 1).map_err(gone)?;
    let peak = memory_hwm_bytes(serve.pid()).unwrap_or(0);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "refusal: peak RSS after a line of 100 MB was refused: {:.1} MiB (idle {:.1})",
        mib(peak),
        mib(idle)
    );
    Ok(())
}

pub(crate) fn overhead() -> Result<(), FigureError> {
    const EXCHANGES: u32 = 2000;
    let argv = played(SERVE)?;
    let engine = Engine::new(&argv)?;
    let (plan, line) = (engine.ping_pong(EXCHANGES), workload::ping());
    let mut pair = Pair::default();
    for round in 0..60 {
        let bare = || {
            let start = Instant::now();
            let mut peer = Pipe::start(&argv)?;
            peer.exchange(&line, EXCHANGES)?;
            drop(peer);
            Ok(start.elapsed())
        };
        let checked = || {
            let start = Instant::now();
            engine.check(&plan).map_err(std::io::Error::other)?;
            Ok(start.elapsed())
        };
        pair.add(turns(round, bare, checked)?);
    }
    let per_exchange = |spread: &Spread| spread.quantile(0.02) / f64::from(EXCHANGES);
    println!(
        "overhead: checked exchange as share of a bare loop, 64 B, one processor: {}; undisturbed {:.3} \
         ({:.2} of {:.2} us)",
        pair.ratio,
        pair.best(),
        per_exchange(&pair.first),
        per_exchange(&pair.second)
    );
    Ok(())
}

/// Rate of the fuzz target for serve conversations without libFuzzer: messages per second of processor time.
pub(crate) fn serve_target() -> Result<(), FigureError> {
    let mut rng = peerproof_engine::data::rng::Rng::new(1);
    let inputs: Vec<properties::Talk> = (0..64).filter_map(|_| drawn(&mut rng, 4_096)).collect();
    let mut rate = Spread::default();
    for _ in 0..50 {
        let start = clock_gettime(ClockId::ThreadCPUTime);
        let messages: usize = inputs.iter().map(properties::serve).sum();
        let time = clock_gettime(ClockId::ThreadCPUTime) - start;
        rate.add(messages as f64 / (time.tv_sec as f64 + time.tv_nsec as f64 / 1e9));
    }
    println!("serve-target: messages per second of processor time: {rate}");
    Ok(())
}

/// Rate of fuzzing on one processor, and as `peerproof fuzz` does by default with a worker per processor. Compared with
/// one peer on one processor.
pub(crate) fn fuzz() -> Result<(), FigureError> {
    let argv = played(SERVE)?;
    let engine = Engine::new(&argv)?;
    let (mut peer, line) = (start(SERVE)?, workload::ping());
    let refuses = |error| FigureError::of("cannot choose processors")(error);
    unpin().map_err(refuses)?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    pin().map_err(refuses)?;
    let (mut on_one, mut on_all) = (Spread::default(), Spread::default());
    let (mut judged, mut exchanged) = (Spread::default(), Spread::default());
    for round in 0..10 {
        let rate = |status: Status| status.messages as f64 / status.elapsed.as_secs_f64();
        let one = rate(engine.fuzz(Duration::from_secs(1), round, 1));
        let time = peer.exchange(&line, 20_000).map_err(FigureError::of("the peer is gone"))?;
        unpin().map_err(refuses)?;
        let every = rate(engine.fuzz(Duration::from_secs(1), round, jobs));
        pin().map_err(refuses)?;
        judged.add(one);
        exchanged.add(1.0 / time.as_secs_f64());
        on_one.add(one * time.as_secs_f64());
        on_all.add(every * time.as_secs_f64());
    }
    println!("fuzz: judged messages/s over the peer's own ping-pong rate, one processor: {on_one}");
    println!("fuzz: the same with {jobs} workers on {jobs} processors: {on_all}");
    println!("fuzz: judged messages/s on one: {judged}; ping-pong exchanges/s: {exchanged}");
    Ok(())
}
