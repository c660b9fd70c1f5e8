//! Behaviours that the contract leaves open for a runner or a service, as values (contract §8 `[choices]`).

use crate::choices::{choices, two};

pub(crate) use crate::choices::{Bom, OverSize};

choices! {
    /// Form of the refusal of an invalid request.
    refusal: Refusal = Refusal::Reply, { "reply" => Refusal::Reply, "crash" => Refusal::Crash };
    /// Result of a tool that ends its process.
    tool_exit: Refusal = Refusal::Reply, { "reply" => Refusal::Reply, "crash" => Refusal::Crash };
    /// Treatment of an unknown guarantee in a request.
    unknown_guarantee: Unknown = Unknown::Refuse, { "refuse" => Unknown::Refuse, "ignore" => Unknown::Ignore };
    /// Effect of a forbidden read of the environment.
    env_read_block: EnvRead = EnvRead::Empty, { "refuse" => EnvRead::Refuse, "empty" => EnvRead::Empty };
    /// Result of a tool that catches the error of a guarantee.
    caught_block: Caught = Caught::Success, { "success" => Caught::Success, "failure" => Caught::Failure };
    /// Treatment of a request or a result over 10 MB.
    over_size: OverSize = OverSize::Refuse, { "refuse" => OverSize::Refuse, "process" => OverSize::Process };
    /// Treatment of a byte order mark.
    bom: Bom = Bom::Refuse, { "ignore" => Bom::Ignore, "refuse" => Bom::Refuse };
    /// Treatment of a call with `sandbox` and without guarantees.
    sandbox_unsupported: Unknown = Unknown::Ignore, { "run" => Unknown::Ignore, "refuse" => Unknown::Refuse };
    /// HTTP status of a refusal.
    refusal_status: RefusalStatus = RefusalStatus::BadRequest, {
        "200" => RefusalStatus::Ok, "400" => RefusalStatus::BadRequest
    };
    /// Reply to a handshake if not all guarantees can be given.
    handshake_shortfall: Shortfall = Shortfall::Partial, {
        "partial" => Shortfall::Partial, "none" => Shortfall::None, "error" => Shortfall::Error
    };
}

/// See [`Choices::handshake_shortfall`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortfall {
    /// The known guarantees are confirmed.
    Partial,
    /// No guarantee is confirmed.
    None,
    /// The handshake fails.
    Error,
}

two! {
    /// See [`Choices::refusal`].
    Refusal { Reply, Crash },
    /// See [`Choices::unknown_guarantee`].
    Unknown { Refuse, Ignore },
    /// See [`Choices::env_read_block`].
    EnvRead { Refuse, Empty },
    /// See [`Choices::caught_block`].
    Caught { Success, Failure },
    /// See [`Choices::refusal_status`].
    RefusalStatus { Ok, BadRequest },
}
