//! All checks of the policy_driver boundary: those of drivers, of bridges, of selectors.

use crate::check::Check;

mod bridge;
mod driver;
mod select;

/// Every check, in the order in which they run.
pub fn all() -> Vec<Check> {
    [driver::checks(), bridge::checks(), select::checks()].into_iter().flatten().collect()
}
