//! Mutants of the HTTP server for envelopes.

use super::Mutant;
use crate::envelope::choices::TrailingText;
use crate::mutant::http::HttpFault;
use crate::mutant::{carrier, config};

/// The mutants of this seam.
pub(super) const MUTANTS: &[Mutant] = &[
    carrier(
        "http-answers-201",
        &["ENV-HTTP-01"],
        "Envelopes come with status 201.",
        HttpFault::ResultCreated,
    ),
    carrier(
        "http-says-nothing",
        &["ENV-HTTP-01"],
        "After fifty requests nothing is answered but by an empty body.",
        HttpFault::TiresAfterFifty,
    ),
    carrier("http-exact-names", &["ENV-HTTP-01"], "Header names have one case.", HttpFault::ExactNames),
    carrier("http-wants-blank", &["ENV-HTTP-01"], "`Name:value` is no header.", HttpFault::WantsBlank),
    carrier("http-text", &["ENV-HTTP-02"], "Envelopes are called text.", HttpFault::TextReplies),
    carrier(
        "http-refuses-with-200",
        &["ENV-HTTP-03"],
        "Refusals come with status 200.",
        HttpFault::Recodes(400, 200),
    ),
    carrier(
        "http-refuses-with-500",
        &["ENV-HTTP-03"],
        "Refusals come with status 500.",
        HttpFault::Recodes(400, 500),
    ),
    carrier(
        "http-refusal-has-envelope",
        &["ENV-HTTP-04"],
        "A refusal has a part of an envelope in it.",
        HttpFault::RefusalHasBody,
    ),
    carrier(
        "http-ends-at-garbage",
        &["ENV-HTTP-05"],
        "What is no HTTP request ends the process.",
        HttpFault::EndsAtGarbage,
    ),
    carrier(
        "http-hangs-at-garbage",
        &["ENV-HTTP-05"],
        "After what is no HTTP request nothing is answered any more.",
        HttpFault::HangsAtGarbage,
    ),
    carrier(
        "http-ends-at-cut",
        &["ENV-HTTP-05"],
        "A connection that breaks off within a request ends the process.",
        HttpFault::EndsAtCut,
    ),
    carrier(
        "http-exact-type",
        &["ENV-HTTP-12"],
        "A content type with a parameter is refused.",
        HttpFault::ExactType,
    ),
    carrier(
        "http-other-path-is-500",
        &["ENV-HTTP-13"],
        "Another path is answered by status 500.",
        HttpFault::Recodes(404, 500),
    ),
    carrier(
        "http-no-chunks",
        &["ENV-HTTP-15"],
        "A body in chunks is taken for an empty one.",
        HttpFault::ChunkedIsEmpty,
    ),
    carrier(
        "http-lower-case-sizes",
        &["ENV-HTTP-15"],
        "The size of a chunk has no capital digits.",
        HttpFault::LowerCaseSizes,
    ),
    carrier(
        "http-refuses-extensions",
        &["ENV-HTTP-15"],
        "A chunk with an extension is no HTTP.",
        HttpFault::NoExtensions,
    ),
    carrier(
        "http-first-piece",
        &["ENV-HTTP-16"],
        "What came first of a body, in one piece, is all that is looked at.",
        HttpFault::FirstPiece,
    ),
    carrier(
        "http-serves-cut",
        &["ENV-HTTP-20"],
        "A body that is cut short is processed.",
        HttpFault::ServesCut,
    ),
    carrier(
        "http-one-connection",
        &["ENV-HTTP-22"],
        "One connection is served at a time.",
        HttpFault::OneConnection,
    ),
    carrier(
        "http-few-connections",
        &["ENV-HTTP-22"],
        "More than 20 connections at a time are refused.",
        HttpFault::FewConnections,
    ),
    carrier(
        "http-mixes-replies",
        &["ENV-HTTP-23"],
        "The first reply on a connection is one that belongs on another.",
        HttpFault::MixesReplies,
    ),
    carrier(
        "http-mixes-large-replies",
        &["ENV-HTTP-23"],
        "The first reply on a connection, where it is large, is a large one that belongs on another.",
        HttpFault::MixesLarge,
    ),
    carrier(
        "http-leaves-bodies",
        &["ENV-HTTP-05"],
        "The body of a request for another path is taken for the beginning of the next request.",
        HttpFault::LeavesBodies,
    ),
    carrier(
        "http-impatient",
        &["ENV-HTTP-16"],
        "A client that is silent for a quarter of a second is dropped.",
        HttpFault::Impatient,
    ),
    carrier(
        "http-takes-longer-paths",
        &["ENV-HTTP-07"],
        "A path that begins as the right one is taken for it.",
        HttpFault::LongerPaths,
    ),
    carrier(
        "http-mixes-request-ids",
        &["ENV-HTTP-23"],
        "The first reply on a connection has the request id of one on another.",
        HttpFault::MixesRequestIds,
    ),
    carrier(
        "http-marks-replies",
        &["ENV-HTTP-25"],
        "Over HTTP `metadata` gets a member that it does not get elsewhere.",
        HttpFault::MarksReplies,
    ),
    carrier(
        "http-holds-bodies",
        &["ENV-SIZE-04"],
        "A body that is too large is held whole before it is refused.",
        HttpFault::HoldsBodies,
    ),
    carrier(
        "http-small-bodies",
        &["ENV-SIZE-01"],
        "Bodies of more than 100,000 bytes are answered 413.",
        HttpFault::SmallBodies,
    ),
    carrier(
        "http-closes-each",
        &["ENV-HTTP-18"],
        "The connection is closed after each reply.",
        HttpFault::ClosesEach,
    ),
    carrier(
        "http-refuses-with-409",
        &["ENV-HTTP-06"],
        "What is no envelope gets status 409.",
        HttpFault::Recodes(400, 409),
    ),
    carrier(
        "http-refuses-with-422",
        &["ENV-HTTP-06"],
        "What is no JSON gets status 422.",
        HttpFault::Recodes(400, 422),
    ),
    carrier(
        "http-other-path-is-400",
        &["ENV-HTTP-07"],
        "Another path gets status 400.",
        HttpFault::Recodes(404, 400),
    ),
    carrier(
        "http-other-method-is-400",
        &["ENV-HTTP-08"],
        "Another method gets status 400.",
        HttpFault::Recodes(405, 400),
    ),
    carrier(
        "http-over-size-is-400",
        &["ENV-HTTP-09"],
        "What is over size gets status 400.",
        HttpFault::Recodes(413, 400),
    ),
    carrier(
        "http-other-type-is-400",
        &["ENV-HTTP-10"],
        "Another content type gets status 400.",
        HttpFault::Recodes(415, 400),
    ),
    carrier("http-refuses-1-0", &["ENV-HTTP-17"], "Requests of HTTP/1.0 are refused.", HttpFault::RefusesOld),
    carrier(
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
