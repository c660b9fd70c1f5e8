//! What the contract leaves open for a driver ([`Choices`]) and for a selector ([`SelectorChoices`]), as values (contract
//! §2; §8 `[choices]`).

pub use crate::choices::Bom;
pub use crate::frame::{BlankLine, LastLine};

pub use driver::Choices;
pub use selector::Choices as SelectorChoices;

/// A payload that is JSON but for something small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NearlyJson {
    /// It is read as what it nearly is.
    Pick,
    /// It is refused.
    Refuse,
}

/// Members that a payload or an entry of its menu does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbsentFields {
    /// They are empty; an entry without a SID is never picked.
    Default,
    /// The payload is refused.
    Malformed,
}

/// Two entries with one SID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateSids {
    /// The first that suits is picked.
    Default,
    /// The payload is refused.
    Malformed,
}

/// What a driver does with a payload that it refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It writes nothing and ends with status 1.
    Exit,
    /// It asks its supervisor.
    AskSup,
    /// It stops.
    Noop,
}

/// A driver that wrote a valid block and exited with status 0 while a child of it holds the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipeHeldByChild {
    /// Its block counts.
    Pick,
    /// It failed.
    Failure,
}

/// A variable that has to be a number and is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidVariables {
    /// The default is in force.
    Default,
    /// The selector does not start.
    Refuse,
}

/// A program with a listed name that is not the one that `PATH` has under this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameNameElsewhere {
    /// It is allowed.
    Accept,
    /// It is not.
    Refuse,
}

/// A `control_mode` other than the two, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherModes {
    /// As `FALLBACK_ONLY`.
    Fallback,
    /// An INVALID Selection.
    Invalid,
}

mod driver {
    use super::{AbsentFields, Bom, DuplicateSids, NearlyJson, Refusal};
    use crate::choices::choices;

    choices! {
        /// A payload that is JSON but for something small.
        nearly_json_payload: NearlyJson = NearlyJson::Refuse, {
            "pick" => NearlyJson::Pick, "refuse" => NearlyJson::Refuse
        };
        /// Members that a payload or an entry of its menu does not have.
        absent_fields: AbsentFields = AbsentFields::Default, {
            "default" => AbsentFields::Default, "malformed" => AbsentFields::Malformed
        };
        /// Two entries with one SID.
        duplicate_sids: DuplicateSids = DuplicateSids::Default, {
            "default" => DuplicateSids::Default, "malformed" => DuplicateSids::Malformed
        };
        /// A mark of byte order before the payload.
        bom: Bom = Bom::Refuse, { "ignore" => Bom::Ignore, "refuse" => Bom::Refuse };
        /// What is done with a payload that is refused.
        refusal: Refusal = Refusal::Exit, {
            "exit" => Refusal::Exit, "ask_sup" => Refusal::AskSup, "noop" => Refusal::Noop
        };
    }
}

mod selector {
    use super::{BlankLine, InvalidVariables, LastLine, OtherModes, PipeHeldByChild, SameNameElsewhere};
    use crate::choices::choices;

    choices! {
        /// A line of nothing but white space.
        blank_line: BlankLine = BlankLine::Ignore, {
            "ignore" => BlankLine::Ignore, "refuse" => BlankLine::Refuse
        };
        /// What stands after the last LF when standard input ends.
        last_line_without_lf: LastLine = LastLine::Process, {
            "process" => LastLine::Process, "refuse" => LastLine::Refuse, "silent" => LastLine::Silent
        };
        /// Unpadded, URL-alphabet, non-canonical and spaced base64 in a block.
        lenient_base64: bool = false, { "accept" => true, "refuse" => false };
        /// Vertical tabs and form feeds around a block.
        vt_ff_trim: bool = false, { "accept" => true, "refuse" => false };
        /// A driver that wrote a valid block and exited while a child of it holds the pipe.
        pipe_held_by_child: PipeHeldByChild = PipeHeldByChild::Pick, {
            "pick" => PipeHeldByChild::Pick, "failure" => PipeHeldByChild::Failure
        };
        /// A variable that has to be a number and is none.
        invalid_variables: InvalidVariables = InvalidVariables::Default, {
            "default" => InvalidVariables::Default, "refuse" => InvalidVariables::Refuse
        };
        /// A program with a listed name that is not the one that `PATH` has under this name.
        same_name_elsewhere: SameNameElsewhere = SameNameElsewhere::Accept, {
            "accept" => SameNameElsewhere::Accept, "refuse" => SameNameElsewhere::Refuse
        };
        /// A `control_mode` other than the two, or none.
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
