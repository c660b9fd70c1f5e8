//! Behaviours that the contract leaves open for a driver ([`Choices`]) and for a selector ([`SelectorChoices`]), as
//! values (contract §2; §8 `[choices]`).

pub(super) use crate::choices::Bom;
pub(super) use crate::frame::{BlankLine, LastLine};

pub use driver::Choices;
pub use selector::Choices as SelectorChoices;

/// Treatment of a payload that is almost JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NearlyJson {
    /// It is read leniently.
    Pick,
    /// It is refused.
    Refuse,
}

/// Treatment of missing members of a payload or of an entry in its menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbsentFields {
    /// They count as empty; an entry without a SID is never picked.
    Default,
    /// The payload is refused.
    Malformed,
}

/// Treatment of two entries with one SID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateSids {
    /// The first matching one is picked.
    Default,
    /// The payload is refused.
    Malformed,
}

/// Output of a driver for a payload that it refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No output, and exit status 1.
    Exit,
    /// ASK_SUP.
    AskSup,
    /// NOOP.
    Noop,
}

/// Treatment of a driver that wrote a valid block and exited with status 0 while its child holds the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipeHeldByChild {
    /// Its block counts.
    Pick,
    /// It counts as a failure.
    Failure,
}

/// Treatment of a variable with an invalid number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidVariables {
    /// The default applies.
    Default,
    /// The selector does not start.
    Refuse,
}

/// Treatment of a program with a listed name that differs from the one in `PATH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameNameElsewhere {
    /// It is allowed.
    Accept,
    /// It is refused.
    Refuse,
}

/// Treatment of a missing or unknown `control_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherModes {
    /// Treated as `FALLBACK_ONLY`.
    Fallback,
    /// Answered with an INVALID Selection.
    Invalid,
}

mod driver {
    use super::{AbsentFields, Bom, DuplicateSids, NearlyJson, Refusal};
    use crate::choices::choices;

    choices! {
        /// Treatment of a payload that is almost JSON.
        nearly_json_payload: NearlyJson = NearlyJson::Refuse, {
            "pick" => NearlyJson::Pick, "refuse" => NearlyJson::Refuse
        };
        /// Treatment of missing members of a payload or of an entry in its menu.
        absent_fields: AbsentFields = AbsentFields::Default, {
            "default" => AbsentFields::Default, "malformed" => AbsentFields::Malformed
        };
        /// Treatment of two entries with one SID.
        duplicate_sids: DuplicateSids = DuplicateSids::Default, {
            "default" => DuplicateSids::Default, "malformed" => DuplicateSids::Malformed
        };
        /// Treatment of a byte order mark before the payload.
        bom: Bom = Bom::Refuse, { "ignore" => Bom::Ignore, "refuse" => Bom::Refuse };
        /// Output for a payload that is refused.
        refusal: Refusal = Refusal::Exit, {
            "exit" => Refusal::Exit, "ask_sup" => Refusal::AskSup, "noop" => Refusal::Noop
        };
    }
}

mod selector {
    use super::{BlankLine, InvalidVariables, LastLine, OtherModes, PipeHeldByChild, SameNameElsewhere};
    use crate::choices::choices;

    choices! {
        /// Treatment of a line of white space.
        blank_line: BlankLine = BlankLine::Ignore, {
            "ignore" => BlankLine::Ignore, "refuse" => BlankLine::Refuse
        };
        /// Treatment of a last line without LF at the end of standard input.
        last_line_without_lf: LastLine = LastLine::Process, {
            "process" => LastLine::Process, "refuse" => LastLine::Refuse, "silent" => LastLine::Silent
        };
        /// Treatment of unpadded, URL-alphabet, non-canonical and spaced base64 in a block.
        lenient_base64: bool = false, { "accept" => true, "refuse" => false };
        /// Treatment of vertical tabs and form feeds around a block.
        vt_ff_trim: bool = false, { "accept" => true, "refuse" => false };
        /// Treatment of a driver that wrote a valid block and exited while its child holds the pipe.
        pipe_held_by_child: PipeHeldByChild = PipeHeldByChild::Pick, {
            "pick" => PipeHeldByChild::Pick, "failure" => PipeHeldByChild::Failure
        };
        /// Treatment of a variable with an invalid number.
        invalid_variables: InvalidVariables = InvalidVariables::Default, {
            "default" => InvalidVariables::Default, "refuse" => InvalidVariables::Refuse
        };
        /// Treatment of a program with a listed name that differs from the one in `PATH`.
        same_name_elsewhere: SameNameElsewhere = SameNameElsewhere::Accept, {
            "accept" => SameNameElsewhere::Accept, "refuse" => SameNameElsewhere::Refuse
        };
        /// Treatment of a missing or unknown `control_mode`.
        other_modes: OtherModes = OtherModes::Fallback, {
            "fallback" => OtherModes::Fallback, "invalid" => OtherModes::Invalid
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_taken_and_given_back() {
        let mut driver = Choices::default();
        for (key, values) in Choices::ALL {
            for value in *values {
                driver.set(key, value).unwrap();
                assert_eq!(driver.get(key), Some(*value));
            }
        }
        let mut selector = SelectorChoices::default();
        for (key, values) in SelectorChoices::ALL {
            for value in *values {
                selector.set(key, value).unwrap();
                assert_eq!(selector.get(key), Some(*value));
            }
        }
        assert!(driver.set("other_modes", "invalid").is_err() && selector.set("refusal", "exit").is_err());
    }
}
