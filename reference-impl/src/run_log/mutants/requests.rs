//! Mutants of the runner that read a request differently.

use super::runner::{Mutant, decides};
use super::values::folded;
use super::wire::edit;
use crate::json::{Policy, Value};
use crate::mutant::parts;
use crate::run_log::line::text_of;
use crate::run_log::{Config, Mode, RunRequest, Ways};

/// Edits the value of a request. Text that is not JSON stays as it is.
fn as_read(text: &[u8], change: impl Fn(&Value) -> Value) -> Vec<u8> {
    let value = Value::parse(text, 128, &Policy::default());
    value.map_or_else(|_| text.to_vec(), |value| text_of(&change(&value)).into_bytes())
}

/// All mutants of this file.
pub(super) const MUTANTS: &[Mutant] = &[
    decides!(
        "run-takes-any-request",
        "LOG-RUN-REFUSES",
        "A request that is wrong is run as an empty one.",
        {
            fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, String> {
                RunRequest::read(text, config).or_else(|_| RunRequest::read(br#"{"goal_id":"none"}"#, config))
            }
        }
    ),
    decides!("run-folds-names", "LOG-RUN-REFUSES", "Names of members may have any case.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, String> {
            RunRequest::read(&as_read(text, folded), config)
        }
    }),
    decides!("run-unwraps-lists", "LOG-RUN-REFUSES", "A request may stand in an array.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, String> {
            let unwrapped = |value: &Value| match value.as_array() {
                Some([only]) => only.clone(),
                _ => value.clone(),
            };
            RunRequest::read(&as_read(text, unwrapped), config)
        }
    }),
    decides!("run-reads-flags-as-text", "LOG-RUN-REFUSES", "`deterministic` may be a text.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, String> {
            let text =
                String::from_utf8_lossy(text).replace("\"deterministic\":\"true\"", "\"deterministic\":true");
            RunRequest::read(text.as_bytes(), config)
        }
    }),
    decides!(
        "run-loses-tools-without-tags",
        "LOG-RUN-MENU",
        "A tool whose tags are no list is not on the menu.",
        {
            fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, String> {
                let without = |value: &Value| {
                    let mut value = value.clone();
                    edit(&mut value, "tools", |tools| {
                        let is_right =
                            |tool: &&Value| tool.get("tags").is_none_or(|tags| tags.as_array().is_some());
                        let kept =
                            tools.as_array().unwrap_or_default().iter().filter(is_right).cloned().collect();
                        *tools = Value::Array(kept);
                    });
                    value
                };
                RunRequest::read(&as_read(text, without), config)
            }
        }
    ),
    decides!("run-refuses-other-members", "LOG-RUN-MEMBERS", "A member that is not named is refused.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, String> {
            if memchr::memmem::find(text, b"\"x\":").is_some() {
                return Err("x is unknown".to_owned());
            }
            RunRequest::read(text, config)
        }
    }),
    decides!("run-asks-a-driver-unasked", "LOG-RUN-DEFAULTS", "Without control_mode the driver selects.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, String> {
            let mut request = RunRequest::read(text, config)?;
            if memchr::memmem::find(text, b"\"control_mode\"").is_none() {
                request.mode = Mode::PolicyOnly;
            }
            Ok(request)
        }
    }),
    decides!("run-wants-inputs", "LOG-RUN-DEFAULTS", "A request without inputs is refused.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, String> {
            match memchr::memmem::find(text, b"\"inputs\"") {
                Some(_) => RunRequest::read(text, config),
                None => Err("no inputs".to_owned()),
            }
        }
    }),
];
