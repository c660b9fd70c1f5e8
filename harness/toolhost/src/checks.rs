//! All checks of the toolhost boundary, by topic.

use peerproof_engine::data::check::Check;

mod ambient;
mod dispatcher;
mod ds_state;
mod framing;
mod http_get;
mod idempotency;
mod json;
mod lease;
mod limits;
mod model;
mod process;
mod request;
mod run;
mod tools;

/// Every check, in the order of execution.
pub(crate) fn all() -> Vec<Check> {
    [
        framing::checks(),
        json::checks(),
        request::checks(),
        tools::checks(),
        run::checks(),
        limits::checks(),
        process::checks(),
        ds_state::checks(),
        idempotency::checks(),
        lease::checks(),
        http_get::checks(),
        model::checks(),
        ambient::checks(),
        dispatcher::checks(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
