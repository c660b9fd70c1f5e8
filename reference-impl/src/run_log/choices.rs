//! Behaviours that the contract leaves open for runners and replayers, as values (contract §8 `[choices]`).

use crate::choices::{choices, two};

choices! {
    /// Runner: spelling of a `run_id`.
    run_id_form: RunIdForm = RunIdForm::Uuid, { "uuid" => RunIdForm::Uuid, "hex32" => RunIdForm::Hex32 };
    /// Runner: number of the first selection.
    first_step: u64 = 0, { "0" => 0, "1" => 1 };
    /// Runner: form of a missing `request_id` on a line.
    request_id_absent: RequestIdAbsent = RequestIdAbsent::Absent, {
        "absent" => RequestIdAbsent::Absent, "null" => RequestIdAbsent::Null, "empty" => RequestIdAbsent::Empty
    };
    /// Runner: true to write `inputs_patched` for a patch of `{}`.
    empty_patch_logged: bool = true, { "true" => true, "false" => false };
    /// Runner: true to end the run at `ASK_SUP`.
    ask_sup_ends: bool = true, { "true" => true, "false" => false };
    /// Runner: true to end the run at `INVALID`.
    invalid_ends: bool = true, { "true" => true, "false" => false };
    /// Runner: true to end the run at `tool_error`.
    tool_error_ends: bool = false, { "true" => true, "false" => false };
    /// Runner: treatment of an unknown `control_mode`.
    control_mode_unknown: UnknownMode = UnknownMode::Refuse, {
        "default" => UnknownMode::Default, "refuse" => UnknownMode::Refuse
    };
    /// Runner: treatment of a `goal_id` that contains `|`.
    goal_id_with_bar: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// Replayer: treatment of a byte order mark before the first line.
    log_bom: Verdict = Verdict::Fail, { "accept" => Verdict::Accept, "fail" => Verdict::Fail };
    /// Replayer: treatment of a line of white space.
    log_blank_line: Verdict = Verdict::Fail, { "accept" => Verdict::Accept, "fail" => Verdict::Fail };
    /// Replayer: treatment of a last line without LF.
    log_last_line_without_lf: Verdict = Verdict::Fail, { "accept" => Verdict::Accept, "fail" => Verdict::Fail };
    /// Replayer: treatment of a `spec_version` or `profile_id` other than the defaults.
    other_spec_version: Verdict = Verdict::Fail, { "accept" => Verdict::Accept, "fail" => Verdict::Fail };
    /// Replayer: treatment of a `run_id` that is neither a UUID nor 32 hex digits.
    run_id_other_form: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "fail" => Verdict::Fail };
    /// Replayer: treatment of unknown members of a patch item or its artifact, and of `value:null` with `remove`.
    patch_extra_members: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "fail" => Verdict::Fail };
    /// Replayer: treatment of `add` on a used slot, and of `replace` or `remove` on an empty one.
    patch_on_other_state: Verdict = Verdict::Fail, { "accept" => Verdict::Accept, "fail" => Verdict::Fail };
    /// Replayer: treatment of a `size_bytes` that differs from the length of `content_json`.
    size_bytes_wrong: SizeBytes = SizeBytes::Fail, {
        "as_written" => SizeBytes::AsWritten, "correct" => SizeBytes::Correct, "fail" => SizeBytes::Fail
    };
    /// Replayer: treatment of a state digest in upper-case digits.
    digest_upper_case: Verdict = Verdict::Fail, { "accept" => Verdict::Accept, "fail" => Verdict::Fail };
    /// Replayer: treatment of `inputs_patched` after a PICK without `input_patch_json`.
    patch_without_selection_patch: Verdict = Verdict::Fail, {
        "accept" => Verdict::Accept, "fail" => Verdict::Fail
    };
    /// Replayer: true to re-run the tool of a `tool_error` with `deterministic:true`, which must fail again.
    tool_error_rerun: bool = false, { "true" => true, "false" => false };
    /// Replayer: treatment of a second run in the file.
    two_runs: TwoRuns = TwoRuns::Fail, { "each" => TwoRuns::Each, "fail" => TwoRuns::Fail };
}

two! {
    /// See [`Choices::run_id_form`].
    RunIdForm { Uuid, Hex32 },
    /// See [`Choices::control_mode_unknown`].
    UnknownMode { Default, Refuse },
    /// Verdict on a form that the contract leaves open.
    Verdict { Accept, Fail },
    /// See [`Choices::two_runs`].
    TwoRuns { Each, Fail },
}

impl Verdict {
    /// Returns `Ok` for `Accept`.
    ///
    /// # Errors
    /// Returns `reason` for `Fail`.
    pub fn allow<E>(self, reason: E) -> Result<(), E> {
        match self {
            Self::Accept => Ok(()),
            Self::Fail => Err(reason),
        }
    }
}

/// See [`Choices::request_id_absent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestIdAbsent {
    /// No member.
    Absent,
    /// `null`.
    Null,
    /// `""`.
    Empty,
}

/// See [`Choices::size_bytes_wrong`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeBytes {
    /// The written number is used.
    AsWritten,
    /// The correct number is used.
    Correct,
    /// The patch is invalid.
    Fail,
}
