#![no_main]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use peerproof_played::toolhost::properties::{Talk, serve};

/// Messages after which their number a second is told.
const TOLD_EVERY: u64 = 1 << 16;

static BEGUN: OnceLock<Instant> = OnceLock::new();
static MESSAGES: AtomicU64 = AtomicU64::new(0);

libfuzzer_sys::fuzz_target!(|talk: Talk| {
    let begun = BEGUN.get_or_init(Instant::now);
    let new = serve(&talk) as u64;
    let messages = MESSAGES.fetch_add(new, Relaxed) + new;
    if messages / TOLD_EVERY != (messages - new) / TOLD_EVERY {
        eprintln!("#messages {messages} messages/s: {:.0}", messages as f64 / begun.elapsed().as_secs_f64());
    }
});
