//! Mutants of what carries envelopes over HTTP.

use super::Mutant;
use crate::envelope::choices::TrailingText;
use crate::mutant::http::HttpFault;
use crate::mutant::{Seam, config};

const fn http(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    what: HttpFault,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Carrier(what))
}

/// The mutants of this seam.
pub const MUTANTS: &[Mutant] = &[
    http("http-answers-201", &["ENV-HTTP-01"], "Envelopes come with status 201.", HttpFault::ResultCreated),
    http(
        "http-says-nothing",
        &["ENV-HTTP-01"],
        "After fifty requests nothing is answered but by an empty body.",
        HttpFault::TiresAfterFifty,
    ),
    http("http-text", &["ENV-HTTP-02"], "Envelopes are called text.", HttpFault::TextReplies),
    http(
        "http-refuses-with-200",
        &["ENV-HTTP-03"],
        "Refusals come with status 200.",
        HttpFault::Recodes(400, 200),
    ),
    http(
        "http-refuses-with-500",
        &["ENV-HTTP-03"],
        "Refusals come with status 500.",
        HttpFault::Recodes(400, 500),
    ),
    http(
        "http-refusal-has-envelope",
        &["ENV-HTTP-04"],
        "A refusal has a part of an envelope in it.",
        HttpFault::RefusalHasBody,
    ),
    http(
        "http-ends-at-garbage",
        &["ENV-HTTP-05"],
        "What is no HTTP request ends the process.",
        HttpFault::EndsAtGarbage,
    ),
    http(
        "http-hangs-at-garbage",
        &["ENV-HTTP-05"],
        "After what is no HTTP request nothing is answered any more.",
        HttpFault::HangsAtGarbage,
    ),
    http(
        "http-ends-at-cut",
        &["ENV-HTTP-05"],
        "A connection that breaks off within a request ends the process.",
        HttpFault::EndsAtCut,
    ),
    http(
        "http-exact-type",
        &["ENV-HTTP-12"],
        "A content type with a parameter is refused.",
        HttpFault::ExactType,
    ),
    http(
        "http-other-path-is-500",
        &["ENV-HTTP-13"],
        "Another path is answered by status 500.",
        HttpFault::Recodes(404, 500),
    ),
    http(
        "http-no-chunks",
        &["ENV-HTTP-15"],
        "A body in chunks is taken for an empty one.",
        HttpFault::ChunkedIsEmpty,
    ),
    http(
        "http-first-piece",
        &["ENV-HTTP-16"],
        "What came first of a body, in one piece, is all that is looked at.",
        HttpFault::FirstPiece,
    ),
    http("http-serves-cut", &["ENV-HTTP-20"], "A body that is cut short is processed.", HttpFault::ServesCut),
    http(
        "http-one-connection",
        &["ENV-HTTP-22"],
        "One connection is served at a time.",
        HttpFault::OneConnection,
    ),
    http(
        "http-few-connections",
        &["ENV-HTTP-22"],
        "More than 20 connections at a time are refused.",
        HttpFault::FewConnections,
    ),
    http(
        "http-mixes-replies",
        &["ENV-HTTP-23"],
        "The first reply on a connection is one that belongs on another.",
        HttpFault::MixesReplies,
    ),
    http(
        "http-marks-replies",
        &["ENV-HTTP-25"],
        "Over HTTP `metadata` gets a member that it does not get elsewhere.",
        HttpFault::MarksReplies,
    ),
    http(
        "http-small-bodies",
        &["ENV-SIZE-01"],
        "Bodies of more than 100,000 bytes are answered 413.",
        HttpFault::SmallBodies,
    ),
    http(
        "http-closes-each",
        &["ENV-HTTP-18"],
        "The connection is closed after each reply.",
        HttpFault::ClosesEach,
    ),
    http(
        "http-refuses-with-409",
        &["ENV-HTTP-06"],
        "What is no envelope gets status 409.",
        HttpFault::Recodes(400, 409),
    ),
    http(
        "http-other-path-is-400",
        &["ENV-HTTP-07"],
        "Another path gets status 400.",
        HttpFault::Recodes(404, 400),
    ),
    http(
        "http-other-method-is-400",
        &["ENV-HTTP-08"],
        "Another method gets status 400.",
        HttpFault::Recodes(405, 400),
    ),
    http(
        "http-over-size-is-400",
        &["ENV-HTTP-09"],
        "What is over size gets status 400.",
        HttpFault::Recodes(413, 400),
    ),
    http(
        "http-other-type-is-400",
        &["ENV-HTTP-10"],
        "Another content type gets status 400.",
        HttpFault::Recodes(415, 400),
    ),
    http("http-refuses-1-0", &["ENV-HTTP-17"], "Requests of HTTP/1.0 are refused.", HttpFault::RefusesOld),
    http(
        "http-refuses-expect",
        &["ENV-HTTP-19"],
        "Requests that wait before their body are refused.",
        HttpFault::RefusesExpect,
    ),
    config(
        "http-ignores-trailing-text",
        &["ENV-HTTP-14"],
        "Text behind the envelope in a body is ignored.",
        |config| config.choices.trailing_text = TrailingText::Ignore,
    ),
];
