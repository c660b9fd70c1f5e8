//! State of a session: full states replace it, deltas change it.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::plan::Chunking;

use super::super::super::expect::Expect;
use super::super::super::talk::Talk;
use super::super::super::talk_state::{Artifact, delta, full, note};
use super::super::framing::good_lines;
use super::{FEATURE, id};

pub(super) fn checks() -> Vec<Check> {
    vec![
        kept_from_requests(),
        kept_from_tools(),
        kept_for_long(),
        emptied_by_tools(),
        every_slot(),
        delta_changes_what_it_names(),
        full_replaces("full-state", ""),
        full_replaces("full-state-with-delta-false", "\"delta\":false,"),
        removed_slots(),
        removed_empty_slot(),
        full_or_deltas(),
        absent_slots_in_full(),
        absent_slots_in_delta(),
        unknown_members(),
        members_in_capitals(),
        descending_order(),
    ]
}

fn kept_from_requests() -> Check {
    Check::new(
        id("slot-sent-with-a-request"),
        "A slot sent with one request still exists for later requests without a state.",
        ["TH-STATE-01"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let sent = note("sent");
            talk.get_is("TH-STATE-01", 2, None);
            talk.apply("TH-STATE-01", &full(&[(2, &sent)]));
            talk.canary_for("TH-STATE-01");
            talk.state_is("TH-STATE-01", &[(2, &sent)]);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn kept_from_tools() -> Check {
    Check::new(
        id("slot-written-by-a-tool"),
        "A slot that a tool wrote still exists for later requests.",
        ["TH-STATE-01"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (one, two) = (note("one"), note("two"));
            talk.put("TH-STATE-01", 5, &one);
            talk.put("TH-STATE-01", 6, &two);
            talk.canary_for("TH-STATE-01");
            talk.state_is("TH-STATE-01", &[(5, &one), (6, &two)]);
            talk.put("TH-STATE-01", 5, &two);
            talk.get_is("TH-STATE-01", 5, Some(&two));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["put", "get"])
}

fn kept_for_long() -> Check {
    Check::new(
        id("slots-after-1000-requests"),
        "Slots from a request and from a tool still exist after 1,000 more requests.",
        ["TH-STATE-01", "TH-FRAME-01"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (sent, written) = (note("sent"), note("written"));
            talk.apply("TH-STATE-01", &full(&[(1, &sent)]));
            talk.put("TH-STATE-01", 2, &written);
            for _ in 0..20 {
                let (lines, expects) = good_lines(&mut talk, "TH-FRAME-01", 50);
                talk.send_all(lines, Chunking::Whole, expects);
            }
            talk.state_is("TH-STATE-01", &[(1, &sent), (2, &written)]);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "put", "get"])
}

fn emptied_by_tools() -> Check {
    Check::new(
        id("slot-emptied-by-a-tool"),
        "A slot that a tool emptied is empty for later requests, and the others are unchanged.",
        ["TH-STATE-01"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (one, two) = (note("one"), note("two"));
            talk.put("TH-STATE-01", 5, &one);
            talk.put("TH-STATE-01", 6, &two);
            let request = talk.ask("remove", "{\"slot\":6}");
            talk.send(request.line(), Expect::ok("TH-STATE-01"));
            talk.state_is("TH-STATE-01", &[(5, &one)]);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["put", "get", "remove"])
}

fn every_slot() -> Check {
    Check::new(
        id("all-eight-slots"),
        "The slots 0 to 7 each have their own Artifact.",
        ["TH-STATE-01"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let notes: Vec<_> = (0..8).map(|slot| note(&format!("slot {slot}"))).collect();
            let slots: Vec<_> = (0..8).zip(&notes).collect();
            talk.apply("TH-STATE-01", &full(&slots));
            talk.state_is("TH-STATE-01", &slots);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn delta_changes_what_it_names() -> Check {
    Check::new(
        id("delta-of-one-slot"),
        "A delta changes the slots it names and leaves the others unchanged.",
        ["TH-STATE-02"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (zero, one, new) = (note("zero"), note("one"), note("new"));
            talk.apply("TH-STATE-02", &full(&[(0, &zero), (1, &one)]));
            talk.apply("TH-STATE-02", &delta(&[(1, &new), (2, &one)], &[]));
            talk.state_is("TH-STATE-02", &[(0, &zero), (1, &new), (2, &one)]);
            let typed = Artifact { kind: "peerproof.other".to_owned(), ..one.clone() };
            talk.apply("TH-STATE-02", &delta(&[(2, &typed)], &[]));
            talk.state_is("TH-STATE-02", &[(0, &zero), (1, &new), (2, &typed)]);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn full_replaces(name: &str, member: &'static str) -> Check {
    Check::new(
        id(name),
        "A state without \"delta\":true replaces the whole state: slots it does not name are empty afterwards.",
        ["TH-STATE-03"],
        "serve",
        move |facts, _| {
            let mut talk = Talk::serve(facts);
            let (old, new) = (note("old"), note("new"));
            talk.apply("TH-STATE-03", &full(&[(0, &old), (1, &old), (7, &old)]));
            let replacing = full(&[(1, &new), (2, &new)]).replacen('{', &format!("{{{member}"), 1);
            talk.apply("TH-STATE-03", &replacing);
            talk.state_is("TH-STATE-03", &[(1, &new), (2, &new)]);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn removed_slots() -> Check {
    Check::new(
        id("removed-slots"),
        "The slots that a delta removes are empty afterwards, the others are not.",
        ["TH-STATE-04"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (old, new) = (note("old"), note("new"));
            talk.apply("TH-STATE-04", &full(&[(0, &old), (1, &old), (2, &old), (7, &old)]));
            talk.apply("TH-STATE-04", &delta(&[(3, &new)], &[0, 7]));
            talk.state_is("TH-STATE-04", &[(1, &old), (2, &old), (3, &new)]);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
    .ambient()
}

fn removed_empty_slot() -> Check {
    Check::new(
        id("removed-slot-that-is-empty"),
        "Removing an empty slot is not an error.",
        ["TH-STATE-04"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let old = note("old");
            talk.apply("TH-STATE-04", &full(&[(1, &old)]));
            talk.apply("TH-STATE-04", &delta(&[], &[4]));
            talk.state_is("TH-STATE-04", &[(1, &old)]);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn full_or_deltas() -> Check {
    Check::new(
        id("full-state-or-sequence-of-deltas"),
        "The same state sent at once and as a sequence of deltas leads to the same replies.",
        ["TH-STATE-05"],
        "serve",
        |facts, _| {
            let (zero, one, two) = (note("zero"), note("one"), note("two"));
            let state = [(0, &zero), (3, &one), (7, &two)];
            let mut talk = Talk::serve(facts);
            talk.apply("TH-STATE-05", &full(&state));
            talk.state_is("TH-STATE-05", &state);
            talk.canary().finish();
            talk.add_session("serve", &[], &[]);
            talk.apply("TH-STATE-05", &delta(&[(0, &two), (5, &two)], &[]));
            talk.apply("TH-STATE-05", &delta(&[(3, &one)], &[]));
            talk.apply("TH-STATE-05", &delta(&[(0, &zero)], &[5]));
            talk.apply("TH-STATE-05", &delta(&[(7, &two)], &[1]));
            talk.state_is("TH-STATE-05", &state);
            talk.canary().finish();
            talk.add_session("serve", &[], &[]);
            let request = talk.ask("get", "{\"slot\":3}").state(&delta(&[(3, &one)], &[]));
            let got = super::super::super::talk_state::got(Some(&one));
            talk.send(request.line(), super::super::super::expect::Expect::new("TH-STATE-05", got));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn absent_slots_in_full() -> Check {
    Check::new(
        id("full-state-without-slots"),
        "A full state without `slots` is the empty state.",
        ["TH-STATE-06"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let old = note("old");
            talk.apply("TH-STATE-06", &full(&[(0, &old), (6, &old)]));
            talk.apply("TH-STATE-06", "{}");
            talk.state_is("TH-STATE-06", &[]);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn absent_slots_in_delta() -> Check {
    Check::new(
        id("delta-without-slots"),
        "A delta without `slots` only removes its `removed_slots`.",
        ["TH-STATE-06"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let old = note("old");
            talk.apply("TH-STATE-06", &full(&[(0, &old), (1, &old), (6, &old)]));
            talk.apply("TH-STATE-06", "{\"delta\":true}");
            talk.state_is("TH-STATE-06", &[(0, &old), (1, &old), (6, &old)]);
            talk.apply("TH-STATE-06", "{\"delta\":true,\"removed_slots\":[6]}");
            talk.state_is("TH-STATE-06", &[(0, &old), (1, &old)]);
            talk.apply("TH-STATE-06", "{\"delta\":true,\"removed_slots\":[]}");
            talk.state_is("TH-STATE-06", &[(0, &old), (1, &old)]);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn unknown_members() -> Check {
    Check::new(
        id("unknown-members-in-state-and-artifact"),
        "Members that the contract does not name, in the state and in an Artifact, are ignored.",
        ["TH-STATE-01"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let sent = note("sent");
            let artifact = sent.text().replacen('{', "{\"extra\":[1],", 1);
            let state = format!("{{\"extra\":{{}},\"slots\":{{\"1\":{artifact}}}}}");
            talk.apply("TH-STATE-01", &state);
            talk.get_is("TH-STATE-01", 1, Some(&sent));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn members_in_capitals() -> Check {
    const CLAUSE: &str = "TH-REQ-10";
    Check::new(
        id("members-in-capitals"),
        "Members with the names of state members in capitals are ignored as unknown members.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (old, new) = (note("old"), note("new"));
            talk.apply(CLAUSE, &full(&[(0, &old)]));
            let (request, expect) = talk.good(CLAUSE);
            talk.send(request.member("DS_STATE", full(&[(1, &new)])).line(), expect);
            let slots = delta(&[(1, &new)], &[]).replacen("\"slots\"", "\"SLOTS\"", 1);
            talk.apply(CLAUSE, &slots.replacen('{', "{\"REMOVED_SLOTS\":[0],", 1));
            talk.state_is(CLAUSE, &[(0, &old)]);
            talk.apply(CLAUSE, &full(&[(1, &new)]).replacen('{', "{\"DELTA\":true,", 1));
            talk.state_is(CLAUSE, &[(1, &new)]);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn descending_order() -> Check {
    Check::new(
        id("slots-in-descending-order"),
        "Slots that are sent, written and removed in descending order have the same result as in ascending \
         order.",
        ["TH-JSON-14", "TH-STATE-04", "TH-STATE-01"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (a, b) = (note("a"), note("b"));
            talk.apply("TH-JSON-14", &full(&[(7, &a), (5, &b), (3, &a), (1, &b)]));
            talk.state_is("TH-JSON-14", &[(1, &b), (3, &a), (5, &b), (7, &a)]);
            talk.apply("TH-STATE-04", &delta(&[(6, &b), (2, &a)], &[7, 5, 1]));
            talk.state_is("TH-STATE-04", &[(2, &a), (3, &a), (6, &b)]);
            talk.put("TH-STATE-01", 5, &a).put("TH-STATE-01", 1, &b);
            talk.state_is("TH-STATE-01", &[(1, &b), (2, &a), (3, &a), (5, &a), (6, &b)]);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get", "put"])
}
