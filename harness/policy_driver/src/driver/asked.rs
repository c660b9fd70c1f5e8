//! Judge of the requests of a bridge to its model.

use super::expect::{Expect, ModelRequest};
use super::payload::payload;
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::{self, DecodeLimits};
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::transcript::{EventKind, Transcript};

/// A request to the model.
struct Request<'a> {
    head: String,
    body: &'a [u8],
}

impl Request<'_> {
    fn method(&self) -> &str {
        self.head.split(' ').next().unwrap_or_default()
    }

    fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// Compares the requests of a session with the expectation.
pub(super) fn judge(transcript: &Transcript, session: usize, expect: &Expect) -> Option<Finding> {
    let asked = expect.asked.as_ref()?;
    let requests: Vec<Request<'_>> = transcript
        .of(session)
        .filter_map(|event| match &event.kind {
            EventKind::ListenerHit { head, body, .. } => {
                Some(Request { head: String::from_utf8_lossy(&head.0).into_owned(), body: &body.0 })
            }
            _ => None,
        })
        .collect();
    let clause = expect.clause.0.as_str();
    let Some(last) = requests.last() else {
        return Some(Finding::new(clause, "not_asked", "a request to the model", "no request"));
    };
    let (reason, expected, got) = match asked {
        ModelRequest::Payload { target } => {
            let sent = payload(&transcript.plan, &expect.payload);
            let is_sent = |request: &Request<'_>| {
                let body = json::decode(request.body, &DecodeLimits::default()).ok().map(|body| body.value);
                body == sent
            };
            let posts: Vec<_> = requests.iter().filter(|request| request.method() == "POST").collect();
            if posts.iter().any(|request| request.target() == target && is_sent(request)) {
                return None;
            }
            let came = format!("{} {}", last.method(), last.target());
            if !posts.iter().any(|request| request.target() == target) {
                ("other_request", format!("POST {target}"), came)
            } else {
                let body = String::from_utf8_lossy(last.body).into_owned();
                ("other_body", "the payload as the body".to_owned(), shorten(&body, 240).into_owned())
            }
        }
        ModelRequest::Authorization(value) => {
            let wrong =
                requests.iter().find(|request| request.header("authorization") != value.as_deref())?;
            let said = |value: Option<&str>| value.map_or("none".to_owned(), |value| format!("{value:?}"));
            let expected = format!("the header Authorization: {}", said(value.as_deref()));
            ("other_authorization", expected, said(wrong.header("authorization")))
        }
    };
    Some(Finding::new(clause, reason, expected, got))
}
