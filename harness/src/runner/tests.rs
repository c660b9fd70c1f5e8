use super::*;
use crate::clause::Side;
use crate::peer::Origin;

#[test]
fn a_check_that_panics_is_a_harness_error_and_the_others_go_on() {
    let boundary = boundary::find("toolhost").unwrap();
    let reference = boundary.references().remove(0);
    let peer = Peer {
        name: "reference".to_owned(),
        boundary,
        commands: reference.commands.into_iter().map(|(name, args)| (name.to_owned(), args)).collect(),
        env: Vec::new(),
        facts: boundary.reference_facts(Side::Provider),
        features_given: true,
        origin: Origin::InProcess(Arc::new(move |args, env| boundary.reference_machine(args, env))),
        latency_us: Arc::default(),
    };
    let panics = Check::new("toolhost/serve/panics", "t", ["TH-FRAME-01"], "serve", |_, _| {
        panic!("byte index 39 is not a char boundary")
    });
    let good = boundary
        .checks()
        .iter()
        .find(|check| check.command == "serve" && check.id.ends_with("plain-request"));
    let scratch = tempfile::tempdir().unwrap();
    let (actor_exe, interrupted) = (ActorExe::new("/nonexistent"), AtomicBool::new(false));
    let around = Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &interrupted };
    let verdicts = Mutex::new(BTreeMap::new());
    run(&peer, &[&panics, good.unwrap()], &Options::default(), around, &|outcome| {
        lock(&verdicts).insert(outcome.result.id, outcome.result.verdict);
    });
    let verdicts = lock(&verdicts);
    let why = "peerproof panicked: byte index 39 is not a char boundary";
    assert_eq!(verdicts["toolhost/serve/panics"], Verdict::HarnessError(why.to_owned()));
    assert_eq!(verdicts.len(), 2);
    assert!(verdicts.values().any(|verdict| *verdict == Verdict::Pass), "{verdicts:?}");
}
