//! Boundary of one's own: ten clauses for a process that adds numbers, and a face with their model.
//!
//! `add A B` is answered `= SUM`, `neg A` by `= -A`, anything else by `! WORD`, and a blank line by nothing. To check
//! your own process: `cargo run -p peerproof-engine --example adder -- ./my_adder`.
#![allow(clippy::print_stdout, reason = "an example tells its reader what it found")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use peerproof_engine::contract::boundary::{Benchmark, Boundary, ConfigKey, Description, Discovery, Wire};
use peerproof_engine::contract::face::{
    Aim, Allowed, Expectation, Expected, Face, Frame, Framing, Misfit, Reading, SessionClauses, Stimulus,
    StimulusKind, Subject,
};
use peerproof_engine::contract::judge;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::clause::{self, Clause, Side};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::{Finding, Judgement, Repair};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking, Plan, Session, Step};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::Transcript;
use peerproof_engine::drive::fixture::ActorExe;
use peerproof_engine::drive::peer::{Origin, Peer};
use peerproof_engine::run::runner::{self, Options, Surroundings};
use peerproof_engine::run::verdict::CheckResult;

/// Contract, one row per clause. In a real crate this is a file.
const CLAUSES: &[(&str, &str)] = &[
    ("ADD-01", "Each line that is not blank gets exactly one reply line, in the order of the requests."),
    ("ADD-02", "The reply to `add A B` is the sum."),
    ("ADD-03", "The reply to `neg A` is the number with the opposite sign."),
    ("ADD-04", "The reply to an unknown word is `! unknown`."),
    (
        "ADD-05",
        "The reply to too few or too many numbers, or to text that is not a number, is `! malformed`.",
    ),
    ("ADD-06", "The reply to a sum beyond 64 bits is `! overflow`."),
    ("ADD-07", "A blank line gets no reply."),
    ("ADD-08", "A reply does not wait for the end of input."),
    ("ADD-09", "Standard output contains replies and nothing else."),
    (
        "ADD-10",
        "At the end of input the process exits with status 0 within 2 s, and no process or file of it is \
         left.",
    ),
];

/// Check without whose answer the others show nothing.
const FIRST_CANARY: &str = "canary/plain-request";

/// Checks: name, tested clause, lines to write.
const CHECKS: &[(&str, &str, &[&str])] = &[
    (FIRST_CANARY, "ADD-01", &["add 1 2"]),
    ("sum/small", "ADD-02", &["add 1 2", "add -5 5", "add 0 -9223372036854775808"]),
    ("sum/too-large", "ADD-06", &["add 9223372036854775807 1"]),
    ("negation", "ADD-03", &["neg 3", "neg -3", "neg 0"]),
    ("refusals/unknown-word", "ADD-04", &["mul 2 3", "ADD 1 2"]),
    ("refusals/wrong-numbers", "ADD-05", &["add 1", "add 1 2 3", "add one two", "neg"]),
    ("blank", "ADD-07", &["", "  "]),
    ("order", "ADD-01", &["add 1 1\nadd 2 2\nadd 3 3"]),
];

/// Face of the process: the expected answer to each line.
struct Adder;

impl Face for Adder {
    type Message = String;
    type Answer = String;
    type Notes = ();
    type State = ();

    fn framing(&self, _command: &str) -> Option<Framing> {
        Some(Framing::Lines)
    }

    fn session_clauses(&self) -> &SessionClauses {
        const SESSION_CLAUSES: SessionClauses = SessionClauses {
            one_reply: "ADD-01",
            flushed: "ADD-08",
            protocol_only: "ADD-09",
            ..SessionClauses::all("ADD-10")
        };
        &SESSION_CLAUSES
    }

    fn begin(&self, _transcript: &Transcript) {}

    fn expect(&self, (): &mut (), stimulus: &Stimulus<'_>) -> Option<Expectation<String>> {
        let StimulusKind::Said(line) = stimulus.what else { return None };
        let text = String::from_utf8_lossy(&line.bytes);
        let (clause, answer) = model(&text.split_whitespace().collect::<Vec<_>>());
        let allowed = answer.map_or_else(Allowed::silence, Allowed::answer);
        Some(Expectation::one(Expected::new(clause, Subject::Turn, vec![allowed])))
    }

    fn read(&self, frame: &Frame<'_>) -> Reading<String> {
        let text = String::from_utf8_lossy(frame.bytes).into_owned();
        match text.starts_with("= ") || text.starts_with("! ") {
            true => Reading::Message(text),
            false => {
                Reading::Broken(Finding::new("ADD-09", "other_output", "a reply begins with = or !", text))
            }
        }
    }

    fn fit(&self, _: &Expected<String>, way: &String, came: &[&String]) -> Result<(), Misfit> {
        let repair = || Repair::Set { at: String::new(), to: Some(way.clone()) };
        let fits = came.iter().all(|answer| *answer == way);
        if fits {
            Ok(())
        } else {
            Err(Misfit { rank: 0, clause: None, reason: "wrong_answer", repair: repair() })
        }
    }

    fn phrase(&self, _: &Expected<String>, way: &String) -> String {
        way.clone()
    }

    fn text(&self, message: &String) -> String {
        message.clone()
    }
}

/// Answer to a line, and the clause that says so.
fn model(words: &[&str]) -> (&'static str, Option<String>) {
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<i64>().ok());
    let refused = |clause, word: &str| (clause, Some(format!("! {word}")));
    match (words.first(), words.len(), number(1), number(2)) {
        (None, ..) => ("ADD-07", None),
        (Some(&"add"), 3, Some(a), Some(b)) => match a.checked_add(b) {
            Some(sum) => ("ADD-02", Some(format!("= {sum}"))),
            None => refused("ADD-06", "overflow"),
        },
        (Some(&"neg"), 2, Some(a), _) if a != i64::MIN => ("ADD-03", Some(format!("= {}", -a))),
        (Some(&"neg"), 2, Some(_), _) => refused("ADD-06", "overflow"),
        (Some(&("add" | "neg")), ..) => refused("ADD-05", "malformed"),
        (Some(_), ..) => refused("ADD-04", "unknown"),
    }
}

/// Conversation about `clause`: the lines, a plain request that shows that the process still works, and the end of
/// input.
fn plan(clause: &str, lines: &[&str]) -> Plan {
    let aim = |reason: Option<&str>| Aim { clause: clause.into(), reason: reason.map(str::to_owned) };
    let send = |text: &str, aim: Aim| {
        let lines: Vec<&str> = text.split('\n').collect();
        let due = lines.iter().filter(|line| model(&line.split_whitespace().collect::<Vec<_>>()).1.is_some());
        let await_frames = u32::try_from(due.count()).unwrap_or(0);
        let payload = Payload::text(format!("{text}\n"));
        let act = Act::Send { payload, chunking: Chunking::Whole, await_frames };
        Step { expect: serde_json::to_value(aim).unwrap_or_default(), ..Step::new(act) }
    };
    let mut steps: Vec<Step> = lines.iter().map(|line| send(line, aim(None))).collect();
    steps.push(Step { canary: true, ..send("add 20 22", aim(Some("canary_failed"))) });
    steps.push(Step::new(Act::Finish));
    let session = Session { command: "command".to_owned(), ..Session::default() };
    Plan { sessions: vec![session], steps, by_model: true, ..Plan::default() }
}

/// Everything else that the engine needs to know.
struct Sums;

impl Boundary for Sums {
    fn description(&self) -> &'static Description {
        const KEYS: &[ConfigKey] = &[ConfigKey::command("command", &[], "adds numbers")];
        const COMMANDS: &[(Side, &[&str])] = &[(Side::Provider, &["command"])];
        const { &Description::new("adder", "a process that adds numbers, one request per line", COMMANDS, KEYS) }
    }

    fn clauses(&self) -> &[Clause] {
        static ROWS: OnceLock<Vec<Clause>> = OnceLock::new();
        ROWS.get_or_init(|| {
            let row = |(id, text): &(&str, &str)| {
                format!(
                    "[[clause]]\nid = '{id}'\nlevel = 'must'\nside = 'provider'\nmodes = ['command']\n\
                     source = 'this file'\ntext = '''{text}'''\n"
                )
            };
            let rows: String = CLAUSES.iter().map(row).collect();
            clause::load(&rows).unwrap_or_else(|error| unreachable!("the clauses do not load: {error}"))
        })
    }

    fn checks(&self) -> &[Check] {
        static ROWS: OnceLock<Vec<Check>> = OnceLock::new();
        ROWS.get_or_init(|| {
            let check = |(name, clause, lines): &(&'static str, &'static str, &'static [&'static str])| {
                let (clause, lines) = (*clause, *lines);
                let title = CLAUSES.iter().find(|(id, _)| *id == clause).map_or("", |(_, text)| *text);
                let plan = move |_: &Facts, _: &mut Rng| Ok(plan(clause, lines));
                let check = Check::new(format!("adder/{name}"), title, [clause], "command", plan);
                if *name == FIRST_CANARY { check.first_canary() } else { check }
            };
            let watched = ["ADD-08", "ADD-09", "ADD-10"];
            let plan = |_: &Facts, _: &mut Rng| Ok(plan("ADD-01", &["add 1 2"]));
            let ambient = Check::new(
                "adder/manners",
                "It writes replies at once and nothing else, and it ends.",
                watched,
                "command",
                plan,
            );
            CHECKS.iter().map(check).chain([ambient.ambient()]).collect()
        })
    }

    fn admit(&self, transcript: &Transcript) -> Result<(), Misconfigured> {
        peerproof_engine::data::transcript::strict::expectations::<Aim>(&transcript.plan)
    }

    fn judge(&self, transcript: &Transcript) -> Judgement {
        judge::judge(&Adder, transcript)
    }

    fn generate(&self, _facts: &Facts, rng: &mut Rng) -> Plan {
        plan("ADD-02", &[&format!("add {} {}", rng.below(1_000), rng.below(1_000))])
    }
}

// Its messages need no help while a conversation runs, its peers have no roles, and it has no benchmark.
impl Wire for Sums {}

impl Discovery for Sums {}

impl Benchmark for Sums {}

/// Runs every check against a command.
fn check(argv: &[String]) -> Vec<CheckResult> {
    let peer = Peer {
        name: "adder".to_owned(),
        boundary: &Sums,
        commands: BTreeMap::from([("command".to_owned(), argv.to_vec())]),
        env: Vec::new(),
        facts: Sums.full_facts(Side::Provider),
        features_given: true,
        origin: Origin::Process { base_env: Vec::new(), current_dir: None, cpus: Vec::new() },
        pace: Arc::default(),
    };
    let scratch = std::env::temp_dir();
    let (actor_exe, interrupted) = (ActorExe::new(Path::new("/nowhere")), Arc::new(AtomicBool::new(false)));
    let around = Surroundings { actor_exe: &actor_exe, scratch: &scratch, interrupted: &interrupted };
    let results = Mutex::new(Vec::new());
    let checks: Vec<&Check> = Sums.checks().iter().collect();
    runner::run(&peer, &checks, &Options::default(), around, &|outcome| {
        results.lock().unwrap_or_else(|error| error.into_inner()).push(outcome.result);
    });
    let mut results = results.into_inner().unwrap_or_else(|error| error.into_inner());
    results.sort_by(|one, other| one.id.cmp(&other.id));
    results
}

fn main() {
    let argv: Vec<String> = std::env::args().skip(1).collect();
    if argv.is_empty() {
        println!(
            "name the command of a process that adds numbers, for example: adder -- python3 my_adder.py"
        );
        return;
    }
    for result in check(&argv) {
        println!("{:<12} {}", result.verdict.word(), result.id);
        for finding in &result.findings {
            println!("    {}: expected {}; got {}", finding.clause, finding.expected, finding.got);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Correct adder; each fault is one replacement in it.
    const ADDER: &str = r#"
import sys
for line in iter(sys.stdin.readline, ""):
    words = line.split()
    if not words:
        continue
    try:
        numbers = [int(word) for word in words[1:]]
    except ValueError:
        numbers = None
    if words[0] not in ("add", "neg"):
        answer = "! unknown"
    elif numbers is None or len(numbers) != dict(add=2, neg=1)[words[0]]:
        answer = "! malformed"
    else:
        value = sum(numbers) if words[0] == "add" else -numbers[0]
        answer = "= %d" % value if -2**63 <= value < 2**63 else "! overflow"
    print(answer, flush=True)
"#;

    /// Ids of the checks that fail, each with the clauses of its findings.
    fn failing(program: &str) -> Vec<String> {
        let argv = ["python3", "-c", program].map(str::to_owned);
        let failed = check(&argv).into_iter().filter(|result| result.verdict.is_failure());
        failed
            .map(|result| {
                let clauses: BTreeSet<&str> = result.findings.iter().map(|it| it.clause.0.as_ref()).collect();
                format!("{} {}", result.id, clauses.into_iter().collect::<Vec<_>>().join(" "))
            })
            .collect()
    }

    #[test]
    fn a_right_adder_is_clean() {
        assert_eq!(failing(ADDER), [""; 0]);
    }

    #[test]
    fn each_fault_is_told_by_its_clause() {
        for (right, wrong, told) in [
            ("sum(numbers)", "(sum(numbers) if min(numbers) >= 0 else 7)", "adder/sum/small ADD-02"),
            ("else -numbers[0]", "else numbers[0]", "adder/negation ADD-03"),
            ("words[0] not in", "words[0].lower() not in", "adder/refusals/unknown-word ADD-04"),
            ("\"! malformed\"", "\"! unknown\"", "adder/refusals/wrong-numbers ADD-05"),
            ("< 2**63", "< 2**80", "adder/sum/too-large ADD-06"),
            ("        continue", "        print('! malformed', flush=True); continue", "adder/blank ADD-07"),
            ("import sys", "import sys\nprint('hello', flush=True)", "adder/manners ADD-09"),
            ("flush=True)\n", "flush=True)\nsys.exit(3)\n", "adder/manners ADD-10"),
        ] {
            let wrong = ADDER.replace(right, wrong);
            assert_eq!(failing(&wrong), [told], "{wrong}");
        }
    }

    #[test]
    fn answers_out_of_order_are_not_taken_for_right_ones() {
        let swapped = ADDER.replace(
            "    print(answer, flush=True)",
            "    if answer == '= 2' and words[1] == '1':\n        held = answer\n        continue\n    \
             print(answer, flush=True)\n    if answer == '= 4':\n        print(held, flush=True)",
        );
        assert_eq!(failing(&swapped), ["adder/order ADD-01"]);
    }
}
