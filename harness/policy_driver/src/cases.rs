//! Cases of the policy_driver boundary as data (`corpora/policy_driver/cases`), and the meaning of their rows.
//!
//! A case is a conversation with a selector, a step a list of outputs of drivers. After each output the fallback
//! must answer. Two valid blocks follow at the end, to show that nothing else caused the refusals.

use std::sync::OnceLock;

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use super::SELECTOR;
use super::request::Request;
use super::selector::expect::Expect;
use super::selector::talk::{Talk, prints};
use peerproof_engine::data::blame::HarnessFault;
use peerproof_engine::data::case::{self, Case, Loaded, Recipe};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Plan;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpora/cases");

/// Valid blocks that follow the refused outputs.
const TAKEN: [&str; 2] = ["<NOOP><END>", "<PICK><SID0042><END>"];

/// Outputs of drivers, one per start.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    refused: Vec<Recipe>,
}

/// The checks of all case files.
pub(crate) fn checks() -> Vec<Check> {
    all().iter().map(|loaded| check(&loaded.case)).collect()
}

/// All cases. The data is embedded; a test shows that it loads.
fn all() -> &'static [Loaded<Row>] {
    static CASES: OnceLock<Vec<Loaded<Row>>> = OnceLock::new();
    CASES.get_or_init(|| {
        load().unwrap_or_else(|error| unreachable!("corpora/policy_driver/cases does not load: {error}"))
    })
}

fn load() -> Result<Vec<Loaded<Row>>, HarnessFault> {
    let cases: Vec<Loaded<Row>> = case::load(case::files(&FILES))?;
    for Loaded { file, case } in &cases {
        let wrong =
            |error: Untestable| HarnessFault::from(format!("{file}.toml, case {:?}: {error}", case.id));
        if !case.modes.is_empty() || !case.env.is_empty() {
            return Err(wrong("`modes` and `env` mean nothing here".into()));
        }
        plan(case).map_err(wrong)?;
    }
    Ok(cases)
}

fn check(case: &Case<Row>) -> Check {
    let id = format!("policy_driver/select/{}", case.id);
    let own = case.clone();
    let planner = move |_: &_, _: &mut _| plan(&own);
    case.check(id, SELECTOR, planner).on_process()
}

fn plan(case: &Case<Row>) -> Result<Plan, Untestable> {
    let clause = case.clauses[0].0.as_str();
    let mut talk = Talk::new();
    talk.canary(clause);
    for recipe in case.steps.iter().flat_map(|row| &row.refused) {
        let output = recipe.payload(&|_| None, &|text| Ok(text.to_owned()))?;
        talk.play(&Request::plain(), prints(output), Expect::fallback(clause));
    }
    for block in TAKEN {
        talk.play(&Request::plain(), prints(Payload::text(block)), Expect::taken(clause, block));
    }
    talk.canary(clause).finish();
    Ok(talk.plan())
}

#[cfg(test)]
mod tests {
    use super::super::block;
    use super::*;
    use peerproof_engine::data::payload::Vars;

    #[test]
    fn the_files_load_and_what_they_refuse_is_no_block() {
        let mut outputs = 0;
        for Loaded { file, case } in load().unwrap() {
            for recipe in case.steps.iter().flat_map(|row| &row.refused) {
                let payload = recipe.payload(&|_| None, &|text| Ok(text.to_owned())).unwrap();
                let bytes = payload.expand(&Vars::new()).unwrap();
                assert!(block::parse(&bytes).is_err(), "{file}, {}: {}", case.id, payload.summary(80));
                outputs += 1;
            }
        }
        assert!(outputs > 100, "only {outputs}");
    }
}
