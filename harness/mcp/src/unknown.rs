//! Names that no server has.

/// Name of a tool that no server has.
pub(crate) const UNKNOWN_TOOL: &str = "peerproof_no_such_tool";
/// Name of a prompt that no server has.
pub(crate) const UNKNOWN_PROMPT: &str = "peerproof_no_such_prompt";
/// Uri of a resource that no server has.
pub(crate) const UNKNOWN_URI: &str = "peerproof-none://no/such/resource";
/// Cursor that no server gave.
pub(crate) const UNKNOWN_CURSOR: &str = "peerproof-no-such-cursor";

/// Id of a task that no server has.
pub(crate) const UNKNOWN_TASK: &str = "peerproof-no-such-task";
