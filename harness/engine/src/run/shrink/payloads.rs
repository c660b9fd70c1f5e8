//! Simpler payloads of a script: shorter runs, and simpler lines of JSON that keep their variables.

use crate::data::json::{self, DecodeLimits, Json};
use crate::data::payload::{Payload, Segment};

/// Maximum length of a line whose members are removed.
const LINE_BYTES_MAX: usize = 16 << 10;
/// Mark around the number of a variable in a line under change.
const MARK: char = '\u{10FFFC}';

/// Simpler payloads, most promising first.
pub fn payloads(payload: &Payload) -> impl Iterator<Item = Payload> + use<> {
    shorter_runs(payload).into_iter().chain(simpler_lines(payload))
}

/// Variants with one run removed, halved, or shortened by a tenth.
fn shorter_runs(payload: &Payload) -> Vec<Payload> {
    let mut out = Vec::new();
    for (at, segment) in payload.0.iter().enumerate() {
        let Segment::Repeat { unit, times } = segment else { continue };
        let fewer = [0, times / 2, times - times / 10];
        for times in fewer.into_iter().filter(|fewer| fewer < times) {
            let mut shorter = payload.clone();
            shorter.0[at] = Segment::Repeat { unit: unit.clone(), times };
            out.push(shorter);
        }
    }
    out
}

/// Simpler variants of a payload that is one JSON value.
fn simpler_lines(payload: &Payload) -> Vec<Payload> {
    let mut text = String::new();
    for (at, segment) in payload.0.iter().enumerate() {
        match segment {
            Segment::Text(part) => text.push_str(part),
            Segment::Var(_) => text.push_str(&format!("\"{MARK}{at}{MARK}\"")),
            Segment::Repeat { .. } | Segment::Hex(_) => return Vec::new(),
        }
    }
    if text.len() > LINE_BYTES_MAX {
        return Vec::new();
    }
    let body = text.trim_end_matches(['\n', '\r']);
    let Ok(decoded) = json::decode(body.as_bytes(), &DecodeLimits::default()) else { return Vec::new() };
    let ending = &text[body.len()..];
    let back = |value: Json| {
        let line = value.to_text() + ending;
        let mut out = Payload::default();
        let mut parts = line.split(MARK).enumerate().peekable();
        while let Some((n, part)) = parts.next() {
            match (n % 2, part.parse().ok().and_then(|at: usize| payload.0.get(at))) {
                (0, _) => {
                    // Remove the quotes that were put around a variable.
                    let part = if n > 0 { part.strip_prefix('"').unwrap_or(part) } else { part };
                    let is_last = parts.peek().is_none();
                    let part = if is_last { part } else { part.strip_suffix('"').unwrap_or(part) };
                    out = out.then(Payload::text(part));
                }
                (_, Some(variable)) => out.0.push(variable.clone()),
                (_, None) => return None,
            }
        }
        Some(out)
    };
    super::simpler(&decoded.value).into_iter().filter_map(back).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_get_shorter_and_lines_simpler_around_their_variables() {
        let told = |payload: Payload| payloads(&payload).map(|it| it.summary(99)).collect::<Vec<_>>();
        let run = told(Payload::text("a").repeat("x", 30));
        assert_eq!(run.len(), 3, "{run:?}");
        let line = Payload::text("{\"result\":[1,2],\"id\":").var("id").then(Payload::text("}\n"));
        let names = |payload: &Payload| payload.variables().map(str::to_owned).collect::<Vec<_>>();
        let simpler: Vec<Payload> = payloads(&line).collect();
        let shorter = Payload::text("{\"result\":[1],\"id\":").var("id").then(Payload::text("}\n"));
        assert!(simpler.contains(&shorter) && simpler.iter().any(|it| names(it).is_empty()), "{simpler:?}");
        assert_eq!(told(Payload::text("noise\n")), [""; 0]);
    }
}
