//! What the contract leaves open for a runner or a service, as values (contract §8 `[choices]`).

use crate::choices::{choices, two};

pub use crate::choices::{Bom, OverSize};

choices! {
    /// How a request that is wrong is refused.
    refusal: Refusal = Refusal::Reply, { "reply" => Refusal::Reply, "crash" => Refusal::Crash };
    /// What comes of a tool that ends its process.
    tool_exit: Refusal = Refusal::Reply, { "reply" => Refusal::Reply, "crash" => Refusal::Crash };
    /// A guarantee that is asked for and has no meaning here.
    unknown_guarantee: Unknown = Unknown::Refuse, { "refuse" => Unknown::Refuse, "ignore" => Unknown::Ignore };
    /// What a tool finds that reads the environment and must not.
    env_read_block: EnvRead = EnvRead::Empty, { "refuse" => EnvRead::Refuse, "empty" => EnvRead::Empty };
    /// A tool that catches what a guarantee refuses to it.
    caught_block: Caught = Caught::Success, { "success" => Caught::Success, "failure" => Caught::Failure };
    /// A request or a result of more than 10 MB.
    over_size: OverSize = OverSize::Refuse, { "refuse" => OverSize::Refuse, "process" => OverSize::Process };
    /// A byte order mark.
    bom: Bom = Bom::Refuse, { "ignore" => Bom::Ignore, "refuse" => Bom::Refuse };
    /// A call with `sandbox` and without guarantees.
    sandbox_unsupported: Unknown = Unknown::Ignore, { "run" => Unknown::Ignore, "refuse" => Unknown::Refuse };
    /// The status of a refusal over HTTP.
    refusal_status: RefusalStatus = RefusalStatus::BadRequest, {
        "200" => RefusalStatus::Ok, "400" => RefusalStatus::BadRequest
    };
    /// What a handshake says where not every guarantee can be given.
    handshake_shortfall: Shortfall = Shortfall::Partial, {
        "partial" => Shortfall::Partial, "none" => Shortfall::None, "error" => Shortfall::Error
    };
}

/// See [`Choices::handshake_shortfall`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortfall {
    /// What is known is enforced.
    Partial,
    /// Nothing is.
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
