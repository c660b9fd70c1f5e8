//! Behaviours that the contract leaves open for an engine, as values (contract §8 `[choices]`).

use crate::choices::{choices, two};

pub use crate::choices::{Bom, OverSize};

choices! {
    /// Treatment of an envelope: unchanged, or advanced by one stage.
    process: Process = Process::Advance, { "identity" => Process::Identity, "advance" => Process::Advance };
    /// Treatment of an envelope without one of the eight required members.
    missing_required: Missing = Missing::Default, { "default" => Missing::Default, "refuse" => Missing::Refuse };
    /// Treatment of `null` in a member whose type does not include it.
    null_member: NullMember = NullMember::Absent, { "absent" => NullMember::Absent, "refuse" => NullMember::Refuse };
    /// Treatment of text after the complete object.
    trailing_text: TrailingText = TrailingText::Refuse, {
        "refuse" => TrailingText::Refuse, "ignore" => TrailingText::Ignore
    };
    /// Treatment of a terminated envelope.
    terminated_input: Kept = Kept::Same, { "same" => Kept::Same, "refuse" => Kept::Refuse };
    /// Treatment of an envelope that waits for a response.
    pending_input: Pending = Pending::Same, {
        "same" => Pending::Same, "terminate" => Pending::Terminate, "refuse" => Pending::Refuse
    };
    /// Treatment of a counter above its maximum. `same` implies an engine that runs no stages: only such an engine may
    /// return the envelope unchanged.
    over_bound: OverBound = OverBound::Terminate, {
        "terminate" => OverBound::Terminate, "refuse" => OverBound::Refuse, "same" => OverBound::Same
    };
    /// Treatment of members that contradict each other.
    inconsistent_input: Kept = Kept::Same, { "keep" => Kept::Same, "refuse" => Kept::Refuse };
    /// Treatment of a named agent's section whose shape differs from its example.
    agent_shapes: Kept = Kept::Same, { "keep" => Kept::Same, "refuse" => Kept::Refuse };
    /// Treatment of the leap second `:60`.
    leap_second: Lenient = Lenient::Refuse, { "accept" => Lenient::Accept, "refuse" => Lenient::Refuse };
    /// Treatment of a space instead of the `T` in a date-time.
    space_for_t: Lenient = Lenient::Refuse, { "accept" => Lenient::Accept, "refuse" => Lenient::Refuse };
    /// Treatment of an envelope over 10 MB.
    over_size: OverSize = OverSize::Refuse, { "refuse" => OverSize::Refuse, "process" => OverSize::Process };
    /// Treatment of a byte order mark.
    bom: Bom = Bom::Refuse, { "ignore" => Bom::Ignore, "refuse" => Bom::Refuse };
}

two! {
    /// See [`Choices::process`].
    Process { Identity, Advance },
    /// See [`Choices::missing_required`].
    Missing { Default, Refuse },
    /// See [`Choices::null_member`].
    NullMember { Absent, Refuse },
    /// See [`Choices::trailing_text`].
    TrailingText { Refuse, Ignore },
    /// Unusual input is returned unchanged, or refused.
    Kept { Same, Refuse },
    /// Unusual spelling is accepted, or refused.
    Lenient { Accept, Refuse },
}

impl Choices {
    /// True if the engine runs stages.
    pub(crate) fn advances(&self) -> bool {
        self.process == Process::Advance && self.over_bound != OverBound::Same
    }
}

/// See [`Choices::pending_input`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pending {
    /// The envelope is returned unchanged.
    Same,
    /// The envelope is terminated.
    Terminate,
    /// The envelope is refused.
    Refuse,
}

/// See [`Choices::over_bound`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverBound {
    /// The envelope is terminated.
    Terminate,
    /// The envelope is refused.
    Refuse,
    /// The envelope is returned unchanged.
    Same,
}
