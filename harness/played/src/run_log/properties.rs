//! Properties of the reference replayer and the model for any bytes. Fuzz targets and tests call the same functions,
//! which panic if a property does not hold.

#[cfg(test)]
mod stored;

use std::collections::VecDeque;

use peerproof_reference::machine::{Action, ChildExit, Event, Machine};
use peerproof_reference::run_log::{Config, CorrectDecisions, Replayer};

use peerproof_engine::contract::program::Program as _;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Vars;
use peerproof_engine::data::plan::{ActorStep, Fixture};
use peerproof_engine::data::rng::Rng;
use peerproof_run_log::replayer::talk::{self, Maker, Pick};
use peerproof_run_log::replayer::{generate, model};
use peerproof_run_log::tools::Toolhost;

/// The reference refuses logs in which the model finds a fault, and accepts those without.
///
/// # Panics
/// Panics if the property does not hold.
pub fn log(data: &[u8]) {
    let told = model::read(data, true);
    let Some(verdict) = replayed(data) else { return };
    let is_ok = verdict.starts_with("REPLAY_STRICT OK");
    let text = || String::from_utf8_lossy(data).into_owned();
    match &told.wrong {
        Some(wrong) => assert!(!is_ok, "{wrong:?}\naccepted: {}", text()),
        None if told.open.is_empty() => assert!(is_ok, "{verdict}\nrefused: {}", text()),
        None => {}
    }
}

/// Replayer and model agree about a log with this patch, from a tool that is not rerun. Slot 0 was used before, and the
/// digests match the apparent meaning of the patch.
///
/// # Panics
/// Panics if the property does not hold.
pub fn tx_patch(data: &[u8]) {
    const NAME: &str = "\"tx_patch\":";
    let mut run = Maker::new(talk::header(), talk::start());
    run.pick(&talk::usual()[0]);
    run.pick(&Pick::default());
    let mut lines = run.finish("end");
    let at = lines.len() - 2;
    let patch = String::from_utf8_lossy(data).parse().unwrap_or_else(|_| Json::Array(Vec::new()));
    let own = patch.to_text();
    if let Some(payload) = lines[at].get_mut("payload") {
        payload.set("tx_patch", patch);
    }
    talk::redigest(&mut lines);
    let text = talk::text(&lines);
    let Some((head, tail)) = text.rsplit_once(NAME) else { unreachable!("a tool_ok has a tx_patch") };
    let tail = tail.strip_prefix(own.as_str()).unwrap_or(tail);
    // On one line, otherwise unchanged.
    let data: Vec<u8> = data.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }).collect();
    log(&[head.as_bytes(), NAME.as_bytes(), &data, tail.as_bytes()].concat());
}

/// Replayer and model agree about generated logs.
///
/// # Panics
/// Panics if the property does not hold.
pub fn generated(mut rng: Rng) {
    for fixture in generate::conversation(&mut rng).fixtures {
        if let Fixture::File { content, .. } = fixture {
            log(&content.expand(&Vars::new()).unwrap_or_default());
        }
    }
}

/// Verdict of the reference replayer about a log; `None` if a tool hangs.
fn replayed(log: &[u8]) -> Option<String> {
    let mut machine = Replayer::new(Config::new("peer"), Box::new(CorrectDecisions));
    let (mut said, mut asked) = (Vec::new(), VecDeque::new());
    machine.handle(Event::Stdin(log), 0, &mut said);
    asked.extend(said.drain(..));
    let mut has_ended = false;
    loop {
        while let Some(action) = asked.pop_front() {
            match action {
                Action::Stdout(bytes) => return String::from_utf8(bytes).ok(),
                Action::Spawn { argv, stdin } => {
                    let mut exit = ChildExit::Code(0);
                    for step in Toolhost::new(&argv[1..]).answer(&stdin) {
                        match step {
                            ActorStep::Stdout(payload) => {
                                let bytes = payload.expand(&Vars::new()).unwrap_or_default();
                                machine.handle(Event::ChildStdout(&bytes), 0, &mut said);
                            }
                            ActorStep::Flood { unit, .. } => {
                                machine.handle(Event::ChildStdout(unit.as_bytes()), 0, &mut said);
                            }
                            ActorStep::Exit(status) => {
                                exit = ChildExit::Code(status);
                                break;
                            }
                            ActorStep::Die(signal) => exit = ChildExit::Signal(signal),
                            ActorStep::Sleep { .. } => return None,
                            _ => {}
                        }
                    }
                    machine.handle(Event::ChildStdoutEof, 0, &mut said);
                    machine.handle(Event::ChildExit(exit), 0, &mut said);
                }
                _ => {}
            }
            asked.extend(said.drain(..));
        }
        if std::mem::replace(&mut has_ended, true) {
            return Some(String::new());
        }
        machine.handle(Event::StdinEof, 0, &mut said);
        asked.extend(said.drain(..));
    }
}
