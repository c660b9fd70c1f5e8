//! Checks of the way from the text of MACHINA_POLICY_CMD to the arguments of a process.

use super::super::super::selector::expect::Expect;
use super::super::super::selector::provided::Provided;
use super::super::super::selector::talk::{looks_and_says, says};
use super::check;
use super::starts::{PICKED, SCRIPT, accepts_as, program};
use peerproof_engine::data::check::Check;

const SPLIT: &str = "PD-CMD-01";
const NOT_EXPANDED: &str = "PD-CMD-02";
const ORDER: &str = "PD-CMD-03";

/// Arguments after the script: their spelling, and what the driver must get.
struct Spelled {
    name: &'static str,
    title: &'static str,
    clause: &'static str,
    text: &'static str,
    words: &'static [&'static str],
}

const SPELLED: &[Spelled] = &[
    Spelled {
        name: "blanks",
        title: "One or several blanks and tabs separate words, and blanks at the end make no word.",
        clause: SPLIT,
        text: "a  b\tc \t d  ",
        words: &["a", "b", "c", "d"],
    },
    Spelled {
        name: "single-quotes",
        title: "Everything between single quotes is literal: blanks, double quotes, backslashes, dollars.",
        clause: SPLIT,
        text: r#"'a  b' 'c"d' 'e\f' 'g\' '$h' '\"'"#,
        words: &["a  b", "c\"d", r"e\f", r"g\", "$h", r#"\""#],
    },
    Spelled {
        name: "backslashes-in-single-quotes",
        title: "Backslashes between single quotes are literal, also two in a row and one at the end.",
        clause: SPLIT,
        text: r"'a\b' 'c\ d' '\' 'e'",
        words: &[r"a\b", r"c\ d", r"\", r"e"],
    },
    Spelled {
        name: "double-quotes",
        title: "Between double quotes a backslash quotes a double quote and itself, and stays before letters.",
        clause: SPLIT,
        text: r#""a  b" "c'd" "e\"f" "g\\h" "i\j" "\\\"""#,
        words: &["a  b", "c'd", "e\"f", r"g\h", r"i\j", r#"\""#],
    },
    Spelled {
        name: "backslashes",
        title: "A backslash outside of quotes quotes what follows: a blank, a quote, itself, a letter.",
        clause: SPLIT,
        text: r#"a\ b \'c \"d e\\f \g \ h"#,
        words: &["a b", "'c", "\"d", r"e\f", "g", " h"],
    },
    Spelled {
        name: "empty-words",
        title: "Quotes with nothing between them are a word.",
        clause: SPLIT,
        text: r#"'' a "" ''"" b"#,
        words: &["", "a", "", "", "b"],
    },
    Spelled {
        name: "joined-parts",
        title: "Quoted and unquoted parts without a blank between them are one word.",
        clause: SPLIT,
        text: r#"a'b'"c"\d e'f g'h 'i'\''j' --k="l m""#,
        words: &["abcd", "ef gh", "i'j", "--k=l m"],
    },
    Spelled {
        name: "variables-and-patterns",
        title: "Variables, tildes, patterns and braces are not expanded.",
        clause: NOT_EXPANDED,
        text: "$HOME ${HOME} $0 $$ $? ~ ~root ~/x ~+ --f=~/x ~:~/x '~' \"~/x\" /* * ? [a-z]* {a,b} a=b %x !! $'a' \"$HOME\"",
        words: &[
            "$HOME", "${HOME}", "$0", "$$", "$?", "~", "~root", "~/x", "~+", "--f=~/x", "~:~/x", "~", "~/x",
            "/*", "*", "?", "[a-z]*", "{a,b}", "a=b", "%x", "!!", "$a", "$HOME",
        ],
    },
    Spelled {
        name: "words-in-order",
        title: "The words arrive unchanged and in order, whatever they look like, with the payload after \
            them.",
        clause: ORDER,
        text: "one two one -- --file=x - /dev/null é漢字 {payload} 0x10 007 true null",
        words: &[
            "one",
            "two",
            "one",
            "--",
            "--file=x",
            "-",
            "/dev/null",
            "é漢字",
            "{payload}",
            "0x10",
            "007",
            "true",
            "null",
        ],
    },
    Spelled {
        name: "no-words",
        title: "A script without words of its own gets the payload as its first argument.",
        clause: ORDER,
        text: "",
        words: &[],
    },
];

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    let mut all: Vec<Check> = SPELLED.iter().map(spelled).collect();
    all.extend([quoted_program(), long_word(), operators()]);
    all
}

fn words(clause: &str, words: &[&str]) -> Expect {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    Expect::taken(clause, PICKED).starts(clause, 1).provided(Provided::Words { clause: clause.into(), words })
}

fn spelled(spelled: &'static Spelled) -> Check {
    let Spelled { name, title, clause, text, words: expected } = spelled;
    check(&format!("command-line/{name}"), title, &[clause], move |talk, _| {
        talk.driver(looks_and_says(PICKED));
        accepts_as(talk, &[], &format!("sh {SCRIPT} {text}"), words(clause, expected));
    })
}

fn quoted_program() -> Check {
    check(
        "command-line/quoted-program-and-script",
        "Program and script may be quoted like other words, with blanks before them.",
        &[SPLIT],
        |talk, _| {
            talk.driver(says(PICKED));
            for command in [
                format!("  's'h \"{SCRIPT}\" a"),
                format!(r"\sh '{SCRIPT}' a"),
                format!("\"sh\"\t{SCRIPT}'' a"),
            ] {
                accepts_as(talk, &[], &command, words(SPLIT, &["a"]));
            }
        },
    )
}

fn long_word() -> Check {
    check(
        "command-line/long-word",
        "A word of 60,000 bytes and a thousand short words arrive unchanged.",
        &[ORDER],
        |talk, _| {
            talk.driver(says(PICKED));
            let long = "x".repeat(60_000);
            accepts_as(talk, &[], &format!("sh {SCRIPT} {long}"), words(ORDER, &[&long]));
            let many = vec!["y"; 1_000];
            accepts_as(talk, &[], &format!("sh {SCRIPT} {}", many.join(" ")), words(ORDER, &many));
        },
    )
}

fn operators() -> Check {
    check(
        "command-line/operators-of-a-shell",
        "Shell operators that end, join or redirect commands are ordinary words, and no second program \
         starts.",
        &[NOT_EXPANDED],
        |talk, _| {
            program(talk, "policies/second.sh");
            talk.driver(says(PICKED));
            const SECOND: &str = "{{policies/second.sh.path}}";
            for operator in [";", "|", "&", "&&", "||"] {
                let command = format!("sh {SCRIPT} {operator} sh {SECOND}");
                let own = words(NOT_EXPANDED, &[operator, "sh", "{{folder}}/policies/second.sh"]);
                accepts_as(talk, &[], &command, own);
            }
            let others = format!("sh {SCRIPT} $({SECOND}) `{SECOND}` > /dev/null 2>&1 < /dev/null (a) #b;c");
            let own = [
                "$({{folder}}/policies/second.sh)",
                "`{{folder}}/policies/second.sh`",
                ">",
                "/dev/null",
                "2>&1",
                "<",
                "/dev/null",
                "(a)",
                "#b;c",
            ];
            accepts_as(talk, &[], &others, words(NOT_EXPANDED, &own));
        },
    )
}
