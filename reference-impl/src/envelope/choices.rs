//! What the contract leaves open for an engine, as values (contract §8 `[choices]`).

use crate::choices::{choices, two};

pub use crate::choices::{Bom, OverSize};

choices! {
    /// What an engine does with an envelope.
    process: Process = Process::Advance, { "identity" => Process::Identity, "advance" => Process::Advance };
    /// One of the eight required members is missing.
    missing_required: Missing = Missing::Default, { "default" => Missing::Default, "refuse" => Missing::Refuse };
    /// `null` for a member whose type lacks it.
    null_member: NullMember = NullMember::Absent, { "absent" => NullMember::Absent, "refuse" => NullMember::Refuse };
    /// Text behind the complete object.
    trailing_text: TrailingText = TrailingText::Refuse, {
        "refuse" => TrailingText::Refuse, "ignore" => TrailingText::Ignore
    };
    /// An envelope that is terminated already.
    terminated_input: Kept = Kept::Same, { "same" => Kept::Same, "refuse" => Kept::Refuse };
    /// An envelope that waits for a response.
    pending_input: Pending = Pending::Same, {
        "same" => Pending::Same, "terminate" => Pending::Terminate, "refuse" => Pending::Refuse
    };
    /// A counter that is over its maximum. Only an engine that runs nothing may give it back: `same` makes it one.
    over_bound: OverBound = OverBound::Terminate, {
        "terminate" => OverBound::Terminate, "refuse" => OverBound::Refuse, "same" => OverBound::Same
    };
    /// Members that contradict each other.
    inconsistent_input: Kept = Kept::Same, { "keep" => Kept::Same, "refuse" => Kept::Refuse };
    /// The section of a named agent has another shape than its example.
    agent_shapes: Kept = Kept::Same, { "keep" => Kept::Same, "refuse" => Kept::Refuse };
    /// `:60`.
    leap_second: Lenient = Lenient::Refuse, { "accept" => Lenient::Accept, "refuse" => Lenient::Refuse };
    /// A space in the place of the T.
    space_for_t: Lenient = Lenient::Refuse, { "accept" => Lenient::Accept, "refuse" => Lenient::Refuse };
    /// An envelope of more than 10 MB.
    over_size: OverSize = OverSize::Refuse, { "refuse" => OverSize::Refuse, "process" => OverSize::Process };
    /// A byte order mark.
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
    /// What is kept as it is, or refused.
    Kept { Same, Refuse },
    /// What a lenient reader takes.
    Lenient { Accept, Refuse },
}

impl Choices {
    /// Whether stages are run.
    pub fn advances(&self) -> bool {
        self.process == Process::Advance && self.over_bound != OverBound::Same
    }
}

/// See [`Choices::pending_input`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pending {
    /// It comes back as it is.
    Same,
    /// It is terminated.
    Terminate,
    /// It is refused.
    Refuse,
}

/// See [`Choices::over_bound`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverBound {
    /// It is terminated.
    Terminate,
    /// It is refused.
    Refuse,
    /// It comes back as it is.
    Same,
}
