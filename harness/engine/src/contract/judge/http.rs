//! Assignment of HTTP replies to requests.
//!
//! The body of a reply only answers its own request.

use crate::contract::face::{Face, HttpExchange, HttpReplyHead, Match, PlacedExpectation, SessionTrace};
use crate::data::finding::{Finding, Repair};
use crate::data::lines::{self, RequestLine};
use crate::data::pace::Allowance;
use crate::data::transcript::{EventKind, Transcript};

/// HTTP exchange of each of a session's `lines`.
pub(super) fn exchanges<'a>(
    transcript: &'a Transcript,
    session: usize,
    lines: &[RequestLine],
) -> Vec<HttpExchange<'a>> {
    // A step and an index within the step identify a request.
    let mut of_step = 0;
    let places: Vec<(usize, usize)> = (0..lines.len())
        .map(|at| {
            of_step = if at > 0 && lines[at - 1].step == lines[at].step { of_step + 1 } else { 0 };
            (lines[at].step, of_step)
        })
        .collect();
    let mut all: Vec<HttpExchange<'a>> = lines.iter().map(|_| HttpExchange::default()).collect();
    let (mut current, mut place) = (None, 0);
    for event in transcript.of(session) {
        match &event.kind {
            EventKind::HttpReply {
                step,
                of_step,
                status,
                content_type,
                head,
                body_bytes,
                keeps_open,
                body,
                ..
            } => {
                current = places.binary_search(&(*step, *of_step)).ok();
                place += 1;
                if let Some(at) = current {
                    let (status, body_bytes, keeps_open) = (*status, *body_bytes, *keeps_open);
                    all[at].reply = Some(HttpReplyHead { status, body_bytes, keeps_open });
                    (all[at].place, all[at].at_us, all[at].wholly_sent) = (place, event.at_us, true);
                    (all[at].content_type, all[at].head) = (content_type.as_deref(), &head.0);
                    all[at].body = body.as_ref().map(|body| body.0.as_slice());
                }
            }
            EventKind::HttpFailed { step, of_step, reason, wholly_sent, will_retry, .. } => {
                current = None;
                if let Ok(at) = places.binary_search(&(*step, *of_step)) {
                    all[at].was_dropped |= will_retry;
                    if !will_retry {
                        (all[at].failure, all[at].wholly_sent) = (Some(reason.as_str()), *wholly_sent);
                    }
                }
            }
            EventKind::Received { bytes } => {
                if let Some(at) = current.take() {
                    let end = memchr::memchr(b'\n', &bytes.0).unwrap_or(bytes.0.len());
                    all[at].body.get_or_insert(&bytes.0[..end]);
                }
            }
            _ => {}
        }
    }
    all
}

/// HTTP requests of a session, each with its exchange.
pub fn said(transcript: &Transcript, session: usize) -> Vec<(RequestLine, HttpExchange<'_>)> {
    let lines = lines::of_session(transcript, session);
    let exchanges = exchanges(transcript, session, &lines);
    lines.into_iter().zip(exchanges).collect()
}

/// Answered HTTP request with its duration.
pub struct TimedReply<'h, 'a, F: Face> {
    /// The request.
    pub asked: &'a PlacedExpectation<F>,
    /// The answers.
    pub came: &'h Match<'a, F>,
    /// Time from sending to the end of the reply, microseconds.
    pub took_us: u64,
    /// Durations of earlier plain requests.
    allowance: Allowance,
}

/// Answered requests of a session that are not plain. A peer may be slow in general, so the duration of plain requests
/// is added to the deadline of later ones.
pub fn timed<'h, 'a, F: Face>(
    heard: &'h SessionTrace<'a, F>,
    is_plain: impl Fn(&PlacedExpectation<F>) -> bool,
) -> impl Iterator<Item = TimedReply<'h, 'a, F>> {
    let mut allowance = Allowance::default();
    heard.exchanges.iter().filter_map(move |(asked, came)| {
        let asked: &'a PlacedExpectation<F> = asked;
        // A process with a single message has no HTTP exchange.
        let exchange = heard.carriages.get(asked.line?).filter(|it| it.reply.is_some())?;
        let took_us = exchange.at_us.saturating_sub(asked.at_us);
        if is_plain(asked) {
            allowance.saw(took_us);
            return None;
        }
        Some(TimedReply { asked, came, took_us, allowance })
    })
}

impl<F: Face> TimedReply<'_, '_, F> {
    /// Describes the duration in one phrase.
    pub fn got(&self) -> String {
        format!("a reply after {} ms", self.took_us / 1_000)
    }

    /// Finding if the reply took longer than `within_ms` milliseconds plus the duration of plain requests. `beside`
    /// continues the description of the expectation.
    pub fn late(&self, clause: &str, within_ms: u64, beside: &str) -> Option<Finding> {
        let plain_ms = self.allowance.plain_us() / 1_000;
        let expected =
            format!("a reply within {within_ms} ms{beside} (plain requests took up to {plain_ms} ms)");
        let finding = Finding::new(clause, "late", expected, self.got()).repaired_by(Repair::Sooner);
        let within_us = within_ms.saturating_mul(1_000).saturating_add(self.allowance.us());
        (self.took_us > within_us).then(|| finding.at(self.asked.step))
    }
}

/// Findings under `clause` if connections close after a reply, in steps about that clause.
pub fn not_kept<F: Face>(heard: &SessionTrace<'_, F>, clause: &'static str) -> Vec<Finding> {
    let about = |asked: &PlacedExpectation<F>| asked.aim.as_ref().is_some_and(|aim| aim.clause.0 == clause);
    let pairs = || {
        let about = heard.exchanges.iter().filter(|(asked, _)| about(asked));
        about.filter_map(|(asked, _)| Some((*asked, &heard.carriages[asked.line?])))
    };
    let dropped = pairs().find(|(_, exchange)| exchange.was_dropped);
    let closed = pairs().find(|(_, exchange)| exchange.reply.is_some_and(|reply| !reply.keeps_open));
    let (asked, got) = match (dropped, closed) {
        (Some((asked, _)), _) => (asked, "the connection was closed after a reply, without notice"),
        (None, Some((asked, _))) => (asked, "the reply announces that the connection closes"),
        (None, None) => return Vec::new(),
    };
    let expected = "the connection stays open after a reply";
    vec![Finding::new(clause, "closed", expected, got).repaired_by(Repair::Undo).at(asked.step)]
}
