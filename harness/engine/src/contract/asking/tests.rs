//! Tests of reading results and scenarios.

use super::*;

#[test]
fn what_stands_in_strings_separates_nothing() {
    assert_eq!(separators(br#"{"a":[1,2],"b":"\"[,{\\","c":"x"}"#), 5);
}

fn scene() -> Plan {
    let mut scene = SceneBuilder::default();
    for (name, after) in [("a", None), ("b", Some("a"))] {
        let mut told = Json::object([("ref", Json::from(name))]);
        told.set("command", Json::array([variable(&format!("{}.path", played(name)))]));
        after.into_iter().for_each(|after| told.set("after", Json::array([after])));
        let script = vec![ActorStep::ReadRequest];
        let actor = Fixture::Actor { name: played(name), script, later: Vec::new() };
        scene.call(told, [actor], 0);
    }
    scene.plan("x", "X-01")
}

#[test]
fn a_scenario_is_read_as_it_was_written() {
    let plan = scene();
    let calls = calls(&plan).unwrap();
    assert_eq!(calls[1].after, ["a"]);
    assert_eq!(calls[0].told.pointer("/command/0"), Some(&Json::from("⟦played-a.path⟧")));
    let Some(Fixture::File { content, .. }) = plan.fixtures.first() else { panic!() };
    assert!(content.variables().eq(["played-a.path", "played-b.path"]));
}

#[test]
fn a_member_that_nobody_reads_is_refused() {
    let members = AskingMembers { scenario: &["project"], call: &["command"] };
    admit(&scene(), members).unwrap();
    let without = admit(&scene(), AskingMembers { call: &[], ..members }).unwrap_err().to_string();
    assert_eq!(without, r#"plan/fixtures: call "a" has an unknown member "command""#);

    let mut misspelt = SceneBuilder::default();
    misspelt.tell("projects", Json::from("x"));
    let error = admit(&misspelt.plan("x", "X-01"), members).unwrap_err().to_string();
    assert_eq!(
        error,
        r#"plan/fixtures: the scenario has an unknown member "projects"; did you mean "project"?"#
    );
}

#[test]
fn a_call_goes_with_what_is_played_for_it() {
    let plan = scene();
    let alone = variants(&plan).into_iter().find(|plan| calls(plan).unwrap()[0].name == "b").unwrap();
    assert_eq!(calls(&alone).unwrap()[0].told.get("after"), Some(&Json::array::<Json>([])));
    assert!(alone.fixtures.iter().all(|fixture| fixture.name() != "played-a"));
}
