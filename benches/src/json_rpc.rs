//! Figures of the json_rpc boundary.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use peerproof_benches::error::FigureError;
use peerproof_benches::pair::{Pair, start, turns};
use peerproof_benches::pipe::Pipe;
use peerproof_benches::spread::Spread;
use peerproof_benches::{RPC, rpc};

use crate::LARGE_BYTES;

/// Requests in one write.
const WINDOW: u32 = 64;

pub(crate) fn pingpong() -> Result<(), FigureError> {
    crate::pingpong("rpc-pingpong", RPC, &rpc::ping())
}

/// Messages of almost a million bytes with their LF, the size that a server must accept.
pub(crate) fn large() -> Result<(), FigureError> {
    crate::large("rpc-large", RPC, "one string", &rpc::one_string(LARGE_BYTES - 80))?;
    crate::large("rpc-large", RPC, "records", &rpc::records(LARGE_BYTES - 80))
}

/// Adapters to third-party libraries by name, if `corpora/peers/third-party/install.sh` has installed them.
fn adapters() -> Vec<(&'static str, Vec<OsString>)> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../corpora/peers/third-party"));
    let target = folder.join("target");
    let node = vec!["node".into(), folder.join("jayson/server.js").into_os_string()];
    let python = |name: &str| -> Vec<OsString> {
        let mut path = OsString::from("PYTHONPATH=");
        path.push(target.join(name));
        vec!["env".into(), path, "python3".into(), folder.join(name).join("server.py").into_os_string()]
    };
    let jsonrpsee = target.join("jsonrpsee/release/jsonrpsee-lines");
    let all: [(&str, PathBuf, Vec<OsString>); 4] = [
        ("jayson", target.join("jayson/installed"), node),
        ("jsonrpclib-pelix", target.join("jsonrpclib-pelix/installed"), python("jsonrpclib-pelix")),
        ("jsonrpcserver", target.join("jsonrpcserver/installed"), python("jsonrpcserver")),
        ("jsonrpsee", jsonrpsee.clone(), vec![jsonrpsee.into_os_string()]),
    ];
    all.into_iter().filter(|(_, proof, _)| proof.exists()).map(|(name, _, argv)| (name, argv)).collect()
}

/// Requests written 64 at a time, compared with the reference's own ping-pong and with every adapter.
pub(crate) fn pipelined() -> Result<(), FigureError> {
    let line = rpc::ping();
    let (mut one, mut many) = (start(RPC)?, start(RPC)?);
    let mut pair = Pair::default();
    for round in 0..500 {
        pair.add(turns(round, || one.exchange(&line, 640), || many.pipelined(&line, WINDOW, 10))?);
    }
    println!(
        "rpc-pipelined: window {WINDOW} over ping-pong, 64 B, one processor: {}; undisturbed {:.3}",
        pair.ratio,
        pair.best()
    );
    let adapters = adapters();
    if adapters.is_empty() {
        println!("rpc-pipelined: no adapter is installed; corpora/peers/third-party/install.sh does it");
    }
    for (name, argv) in adapters {
        let mut adapter = Pipe::start(&argv).map_err(FigureError::of(format!("cannot start {name}")))?;
        adapter.exchange(&line, 100).map_err(FigureError::of(format!("{name} does not answer")))?;
        let mut pair = Pair::default();
        for round in 0..100 {
            let adapter = || adapter.pipelined(&line, WINDOW, 10);
            pair.add(turns(round, adapter, || many.pipelined(&line, WINDOW, 10))?);
        }
        let per_second = |time_us: &Spread| 1e6 / time_us.quantile(0.5);
        println!(
            "rpc-pipelined: times as fast as {name}, 64 B, window {WINDOW}, one processor: {} ({:.0} over {:.0} \
             messages/s)",
            pair.ratio,
            per_second(&pair.second),
            per_second(&pair.first)
        );
    }
    Ok(())
}
