//! The model of the breaker and the reference selector agree for all behaviours and timings of drivers.

#![allow(clippy::unwrap_used, reason = "clippy takes helpers of an integration test for library code")]

use peerproof_policy_driver::selector::model::{Breaker, Span, Start};
use peerproof_reference::limits::Limits;
use peerproof_reference::machine::{Action, ChildExit, Event, Machine, Millis, SpawnFailure};
use peerproof_reference::policy_driver::guard::{FileKind, Files};
use peerproof_reference::policy_driver::settings::Settings;
use peerproof_reference::policy_driver::{Parts, Selector, SelectorChoices, SelectorConfig};
use proptest::prelude::*;

const TIMEOUT_MS: Millis = 40;
const STDOUT_MAX: usize = 60;
const BLOCK: &str = "<PICK><SID0002><END>";

/// Treats every path as a machine-code program.
#[derive(Debug)]
struct Programs;

impl Files for Programs {
    fn kind(&self, _path: &str) -> FileKind {
        FileKind::Program(Some(*b"\x7fELF"))
    }

    fn canonical(&self, path: &str) -> Option<String> {
        Some(path.to_owned())
    }
}

/// Step of the world.
#[derive(Debug, Clone)]
enum Step {
    /// A request comes; a driver started for it behaves like this.
    Ask(DriverBehaviour),
    /// Time passes.
    Pass(Millis),
    /// A line comes that starts nothing.
    Line(&'static str),
}

/// Behaviour of a driver.
#[derive(Debug, Clone)]
enum DriverBehaviour {
    /// Prints and exits with 0 after this time.
    Prints(&'static str, Millis),
    /// Prints a block and ends otherwise after this time.
    Ends(ChildExit, Millis),
    /// Prints more than allowed.
    Floods,
    /// Prints and lives on, with its output open or closed.
    Hangs(&'static str, bool),
    /// Prints a space at this interval, forever.
    Dribbles(Millis),
    /// Cannot be started.
    IsNone,
}

impl DriverBehaviour {
    fn is_block(&self) -> bool {
        matches!(self, Self::Prints(text, after) if *after < TIMEOUT_MS && valid(text))
    }
}

fn valid(text: &str) -> bool {
    [BLOCK, "<NOOP><END>", "<ASK_SUP><END>"].contains(&text.trim())
}

fn deed() -> impl Strategy<Value = DriverBehaviour> {
    let texts = prop::sample::select(vec![
        BLOCK,
        " <PICK><SID0002><END>\n",
        "<NOOP><END>",
        "<ASK_SUP><END>\r\n",
        "",
        " \n",
        "<PICK><SID0003><END>",
        "<NOOP><END><NOOP><END>",
        "no",
    ]);
    let exits = prop_oneof![(1..256).prop_map(ChildExit::Code), (1..32).prop_map(ChildExit::Signal)];
    prop_oneof![
        6 => (texts.clone(), 0..TIMEOUT_MS + 10).prop_map(|(text, after)| DriverBehaviour::Prints(text, after)),
        2 => (exits, 0..TIMEOUT_MS + 10).prop_map(|(exit, after)| DriverBehaviour::Ends(exit, after)),
        1 => Just(DriverBehaviour::Floods),
        1 => (texts, any::<bool>()).prop_map(|(text, closes)| DriverBehaviour::Hangs(text, closes)),
        1 => (1..TIMEOUT_MS).prop_map(DriverBehaviour::Dribbles),
        1 => Just(DriverBehaviour::IsNone),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let line = |mode: &str| format!("{{\"control_mode\":\"{mode}\",\"menu\":[{{\"sid\":\"SID0001\"}}]}}");
    let lines: Vec<&'static str> = ["FALLBACK_ONLY", "AUTO"]
        .map(|mode| &*line(mode).leak())
        .into_iter()
        .chain(["{", "[]", "no"])
        .collect();
    prop_oneof![
        6 => deed().prop_map(Step::Ask),
        2 => (0..160_u64).prop_map(Step::Pass),
        1 => prop::sample::select(lines).prop_map(Step::Line),
    ]
}

struct World {
    selector: Selector,
    now: Millis,
    driving: bool,
    starts: u32,
    wake: Option<Millis>,
    lines: Vec<serde_json::Value>,
}

impl World {
    fn new(threshold: u64, cooldown_ms: u64) -> Self {
        let variables = [
            ("MACHINA_POLICY_CMD", "driver".to_owned()),
            ("MACHINA_POLICY_ALLOWED_EXE", "driver".to_owned()),
            ("PATH", "/bin".to_owned()),
            ("MACHINA_POLICY_TIMEOUT_MS", TIMEOUT_MS.to_string()),
            ("MACHINA_POLICY_STDOUT_MAX", STDOUT_MAX.to_string()),
            ("MACHINA_POLICY_FAIL_THRESHOLD", threshold.to_string()),
            ("MACHINA_POLICY_COOLDOWN_MS", cooldown_ms.to_string()),
        ];
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        let (limits, choices) = (Limits::default(), SelectorChoices::default());
        let settings = Settings::read(&variable, &limits, &choices).unwrap();
        let config = SelectorConfig { settings, choices, limits, patches: true, merged_inputs: true };
        let parts = Parts::new(&config, Box::new(Programs));
        let selector = Selector::new(config, parts);
        Self { selector, now: 0, driving: false, starts: 0, wake: None, lines: Vec::new() }
    }

    fn tell(&mut self, event: Event<'_>) {
        let mut actions = Vec::new();
        self.selector.handle(event, self.now, &mut actions);
        for action in actions {
            match action {
                Action::Stdout(bytes) => self.lines.push(serde_json::from_slice(&bytes).unwrap()),
                Action::Drive(_) => (self.driving, self.starts) = (true, self.starts + 1),
                Action::Kill => self.driving = false,
                Action::WakeAt(at) => self.wake = Some(at),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Passes time while a driver runs, with the selector's wake-ups.
    fn pass_to(&mut self, to: Millis) {
        while self.driving && self.wake.is_some_and(|at| at <= to) {
            self.now = self.wake.take().unwrap_or(to).max(self.now);
            self.tell(Event::Wake);
        }
        if self.driving {
            self.now = to;
        }
    }

    fn print(&mut self, text: &str) {
        if self.driving && !text.is_empty() {
            self.tell(Event::ChildStdout(text.as_bytes()));
        }
    }

    fn end(&mut self, exit: ChildExit) {
        if self.driving {
            self.tell(Event::ChildStdoutEof);
        }
        if self.driving {
            self.tell(Event::ChildExit(exit));
        }
    }

    /// Asks, with a driver of this behaviour; returns the number of starts and the Selection.
    fn ask(&mut self, deed: &DriverBehaviour) -> (u32, serde_json::Value) {
        const REQUEST: &str =
            "{\"control_mode\":\"POLICY_ONLY\",\"menu\":[{\"sid\":\"SID0001\"},{\"sid\":\"SID0002\"}]}\n";
        let (before, began) = (self.starts, self.now);
        self.tell(Event::Stdin(REQUEST.as_bytes()));
        if self.driving {
            match deed {
                DriverBehaviour::Prints(text, after) => {
                    self.pass_to(began + after);
                    self.print(text);
                    self.end(ChildExit::Code(0));
                }
                DriverBehaviour::Ends(exit, after) => {
                    self.print(BLOCK);
                    self.pass_to(began + after);
                    self.end(*exit);
                }
                DriverBehaviour::Floods => self.print(&format!("{BLOCK}{}", " ".repeat(STDOUT_MAX))),
                DriverBehaviour::Hangs(text, closes) => {
                    self.print(text);
                    if *closes {
                        self.tell(Event::ChildStdoutEof);
                    }
                    self.pass_to(began + 2 * TIMEOUT_MS);
                }
                DriverBehaviour::Dribbles(pause) => {
                    for n in 1..=2 * TIMEOUT_MS / pause {
                        self.pass_to(began + n * pause);
                        self.print(" ");
                    }
                    self.pass_to(began + 2 * TIMEOUT_MS);
                }
                DriverBehaviour::IsNone => {
                    self.tell(Event::ChildSpawnFailed(SpawnFailure::NotFound("driver".to_owned())))
                }
            }
        }
        assert!(!self.driving, "{deed:?} has no end");
        assert!(self.now <= began + TIMEOUT_MS, "{deed:?}: a Selection in time");
        (self.starts - before, self.lines.pop().unwrap())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn model_and_reference_agree(
        threshold in 1..5_u64,
        cooldown_ms in prop_oneof![Just(0), 1..200_u64],
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut world = World::new(threshold, cooldown_ms);
        let mut model = Breaker::new(threshold, cooldown_ms);
        for (at, step) in steps.iter().enumerate() {
            match step {
                Step::Pass(ms) => world.now += ms,
                Step::Line(line) => {
                    let before = world.starts;
                    world.tell(Event::Stdin(format!("{line}\n").as_bytes()));
                    prop_assert!(world.starts == before && world.lines.pop().is_some(), "step {at}: {step:?}");
                }
                Step::Ask(deed) => {
                    let start = model.start(Span::at(world.now * 1_000));
                    let (starts, selection) = world.ask(deed);
                    prop_assert_ne!(start, Start::May, "moments are known");
                    prop_assert_eq!(starts, u32::from(start == Start::Must), "step {}: {:?}", at, step);
                    let taken = starts > 0 && deed.is_block();
                    let fell_back = selection["kind"] == "PICK" && selection["sid"] == "SID0001";
                    prop_assert_eq!(fell_back, !taken, "step {}: {:?}, {}", at, step, selection);
                    if taken {
                        model.succeeds();
                    } else if starts > 0 {
                        model.fails(Span::at(world.now * 1_000));
                    }
                }
            }
        }
    }
}
