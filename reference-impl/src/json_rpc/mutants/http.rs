//! Mutants of the HTTP transport: status codes, framings, connections.

use super::Mutant;
use crate::mutant::carrier;
use crate::mutant::http::HttpFault;

/// The mutants of this seam.
pub(super) const MUTANTS: &[Mutant] = &[
    carrier(
        "http-result-created",
        &["RPC-HTTP-01"],
        "Results come with status 201.",
        HttpFault::ResultCreated,
    ),
    carrier(
        "http-error-is-500",
        &["RPC-HTTP-02"],
        "Errors come with status 500.",
        HttpFault::ErrorIsServerError,
    ),
    carrier(
        "http-notification-has-body",
        &["RPC-HTTP-03", "RPC-NOTE-01"],
        "A notification is answered by an empty object.",
        HttpFault::NotificationHasBody,
    ),
    carrier(
        "http-notification-is-500",
        &["RPC-HTTP-03"],
        "A notification is answered by status 500.",
        HttpFault::NotificationIsServerError,
    ),
    carrier(
        "http-oversize-is-500",
        &["RPC-HTTP-04"],
        "A body that is too large is answered by status 500.",
        HttpFault::OversizeIsServerError,
    ),
    carrier(
        "http-other-method-is-200",
        &["RPC-HTTP-05"],
        "Methods other than POST are answered by status 200.",
        HttpFault::OtherMethodIsFine,
    ),
    carrier(
        "http-other-type-is-500",
        &["RPC-HTTP-06"],
        "Another content type is answered by status 500.",
        HttpFault::OtherTypeIsServerError,
    ),
    carrier(
        "http-no-chunks",
        &["RPC-HTTP-07"],
        "A body in chunks is taken for an empty one.",
        HttpFault::ChunkedIsEmpty,
    ),
    carrier("http-exact-names", &["RPC-HTTP-07"], "Header names have one case.", HttpFault::ExactNames),
    carrier("http-wants-blank", &["RPC-HTTP-07"], "`Name:value` is no header.", HttpFault::WantsBlank),
    carrier(
        "http-short-read",
        &["RPC-HTTP-07"],
        "Of a body no more than the first 50 bytes are looked at.",
        HttpFault::ShortRead,
    ),
    carrier(
        "http-leaves-bodies",
        &["RPC-HTTP-05"],
        "The body of a request with another method is taken for the next request.",
        HttpFault::LeavesBodies,
    ),
    carrier(
        "http-drops-slow-clients",
        &["RPC-HTTP-07"],
        "A client that is silent for a quarter of a second is dropped.",
        HttpFault::Impatient,
    ),
    carrier(
        "http-shares-large-replies",
        &["RPC-HTTP-09"],
        "Large replies that are under way together become one.",
        HttpFault::SharesLarge,
    ),
    carrier(
        "http-closes-each",
        &["RPC-HTTP-08"],
        "The connection is closed after each reply.",
        HttpFault::ClosesEach,
    ),
    carrier(
        "http-closes-silently",
        &["RPC-HTTP-08"],
        "The connection is closed after each reply, which does not say so.",
        HttpFault::ClosesSilently,
    ),
    carrier(
        "http-one-connection",
        &["RPC-HTTP-09"],
        "One connection is served at a time.",
        HttpFault::OneConnection,
    ),
    carrier(
        "http-few-connections",
        &["RPC-HTTP-09"],
        "More than 20 connections at a time are refused.",
        HttpFault::FewConnections,
    ),
    carrier(
        "http-ends-at-garbage",
        &["RPC-HTTP-10"],
        "What is no HTTP request ends the process.",
        HttpFault::EndsAtGarbage,
    ),
    carrier(
        "http-ends-at-cut",
        &["RPC-HTTP-10"],
        "A connection that breaks off within a request ends the process.",
        HttpFault::EndsAtCut,
    ),
    carrier(
        "http-small-bodies",
        &["RPC-HTTP-04"],
        "Bodies of more than 100,000 bytes are answered 413.",
        HttpFault::SmallBodies,
    ),
    carrier(
        "http-exact-type",
        &["RPC-HTTP-06"],
        "A content type with a parameter is answered 415.",
        HttpFault::ExactType,
    ),
    carrier(
        "http-tires-after-fifty",
        &["RPC-FRAME-01"],
        "After fifty messages over HTTP nothing is answered but by an empty body.",
        HttpFault::TiresAfterFifty,
    ),
    carrier(
        "http-hangs-at-garbage",
        &["RPC-HTTP-10"],
        "After what is no HTTP request nothing is answered any more.",
        HttpFault::HangsAtGarbage,
    ),
    carrier(
        "http-ignores-encoding",
        &["RPC-GZIP-01"],
        "Content-Encoding is not looked at: compressed bodies are no JSON.",
        HttpFault::IgnoresEncoding,
    )
    .needing("gzip"),
    carrier(
        "http-skips-check-sum",
        &["RPC-GZIP-03", "RPC-GZIP-02"],
        "The check sum of compressed bodies is not looked at.",
        HttpFault::SkipsSum,
    )
    .needing("gzip"),
    carrier(
        "http-inflates-first",
        &["RPC-GZIP-05"],
        "A compressed body is inflated whole before its size is looked at.",
        HttpFault::InflatesFirst,
    )
    .needing("gzip"),
    carrier(
        "http-inflated-size-is-500",
        &["RPC-GZIP-02"],
        "A body that inflates to too much is answered by status 500.",
        HttpFault::InflatedIsServerError,
    )
    .needing("gzip"),
];
