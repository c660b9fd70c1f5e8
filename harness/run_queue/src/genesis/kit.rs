//! What a configuration says of the Genesis tools: their aids, their inputs, and the sample of a source.

use std::collections::BTreeMap;

use peerproof_engine::facts::Facts;
use peerproof_engine::json::Json;
use peerproof_engine::peer::{fill, fill_template};
use serde_json::Value;

/// What stands in a sample for the letters.
pub const NONCE: &str = "@NONCE@";

/// How many letters there are.
pub const LETTERS: usize = 16;

/// The feature: a toolhost with these tools.
pub const GENESIS: &str = "genesis";

/// The feature that it has a compiler; the harness derives it.
pub const COMPILER: &str = "compiler";

/// The feature that it has none; a table tells how one is started so that has one else: `{ env }`.
pub const NO_COMPILER: &str = "no_compiler";

/// A text that no compiler takes, whatever the language; a line of it is an error of its own.
pub const GARBAGE: &str = "` ` @@@ (((\n";

/// What a plugin holds that ends once a file is there.
pub const ENDS: &str = "peerproof_ends";

/// The roles of the three tools, in the order of use.
pub const ROLES: [&str; 3] = ["write_file", "compile", "load"];

/// The aid of the tool of a role where no other is configured.
pub fn usual_aid(role: &str) -> String {
    format!("AID.GENESIS.{}.v1", role.to_uppercase())
}

/// One of the three tools.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Its aid.
    pub aid: String,
    /// Its input with placeholders.
    pub template: Value,
}

/// The tools of a peer, and what they are tried with.
#[derive(Debug, Clone)]
pub struct Kit {
    /// Writes a source.
    pub write: Tool,
    /// Compiles one.
    pub compile: Tool,
    /// Loads what was compiled.
    pub load: Tool,
    /// The aid of the sample.
    pub aid: String,
    /// The sample.
    pub sample: String,
    /// What its file is called before the dot, which some languages bind what is in it to.
    pub stem: String,
    /// What its file is called behind the dot.
    pub suffix: String,
    /// Whether there is a compiler.
    pub compiles: bool,
}

impl Kit {
    /// What `facts` say.
    pub fn of(facts: &Facts) -> Self {
        let tool = |role: &str, members: &[&str]| {
            let given = facts.roles.get(role);
            let aid = given.and_then(|role| role.get("aid")?.as_str());
            let usual = || members.iter().map(|name| ((*name).to_owned(), format!("{{{name}}}").into()));
            let template = given.and_then(|role| role.get("input")).cloned();
            Tool {
                aid: aid.map_or_else(|| usual_aid(role), str::to_owned),
                template: template.unwrap_or_else(|| Value::Object(usual().collect())),
            }
        };
        let feature = facts.features.get(GENESIS);
        let text = |name: &str| feature.and_then(|feature| feature.get(name)?.as_str()).unwrap_or_default();
        let name = text("source").rsplit('/').next().unwrap_or_default();
        let (stem, suffix) = name.rsplit_once('.').unwrap_or((name, "txt"));
        Self {
            write: tool("write_file", &["path", "content"]),
            compile: tool("compile", &["path", "name"]),
            load: tool("load", &["name"]),
            aid: text("aid").to_owned(),
            sample: text("text").to_owned(),
            stem: if stem.is_empty() { "sample" } else { stem }.to_owned(),
            suffix: suffix.to_owned(),
            compiles: facts.claims(COMPILER),
        }
    }

    /// The sample with these letters.
    pub fn sample(&self, letters: &str) -> String {
        self.sample.replace(NONCE, letters)
    }

    /// A name of a source file.
    pub fn file(&self, stem: &str) -> String {
        format!("{stem}.{}", self.suffix)
    }

    /// The name of the sample's file.
    pub fn sample_file(&self) -> String {
        self.file(&self.stem)
    }

    /// Another path that a sample may be written to.
    pub fn other_file(&self) -> String {
        match self.language() {
            Some(_) => self.file("again"),
            None => format!("again/{}", self.sample_file()),
        }
    }

    /// The letters that a text holds in the place of the sample's.
    pub fn letters(&self, text: &str) -> Option<String> {
        let (before, _) = self.sample.split_once(NONCE)?;
        let letters = text.strip_prefix(before)?.get(..LETTERS)?;
        let are_letters = letters.bytes().all(|byte| byte.is_ascii_lowercase());
        (are_letters && self.sample(letters) == text).then(|| letters.to_owned())
    }

    fn language(&self) -> Option<Language> {
        match self.suffix.as_str() {
            "c" => Some(Language::C),
            "cc" | "cpp" | "cxx" => Some(Language::Cpp),
            "rs" => Some(Language::Rust),
            _ => None,
        }
    }

    /// A program that is no plugin.
    pub fn no_plugin(&self) -> Option<&'static str> {
        self.language().map(|language| match language {
            Language::C | Language::Cpp => "int main(void) { return 3; }\n",
            Language::Rust => "fn main() { std::process::exit(3) }\n",
        })
    }

    /// A source that takes in all of a file first.
    pub fn including(&self, path: &str) -> Option<String> {
        self.language().map(|language| match language {
            Language::C | Language::Cpp => format!("#include \"{path}\"\n"),
            Language::Rust => format!(
                "const TEXT: &str = include_str!(\"{path}\");\nfn main() {{ print!(\"{{TEXT}}\") }}\n"
            ),
        })
    }

    /// The sample of a plugin that ends so, once a file `flag` is there. Each process that has it adds its id to a file `mark`,
    /// with `!` behind it before it ends.
    pub fn ending(&self, letters: &str, how: End, flag: &str, mark: &str) -> Option<String> {
        let language = self.language()?;
        let end = match (language, how) {
            (Language::Rust, End::Exit) => "std::process::exit(3)",
            (Language::Rust, End::Abort) => "std::process::abort()",
            (Language::Rust, End::Hang) => "loop { std::thread::sleep(std::time::Duration::from_secs(9)) }",
            (_, End::Exit) => "_exit(3);",
            (_, End::Abort) => "abort();",
            (_, End::Hang) => "for (;;) pause();",
        };
        let tail = match language {
            Language::Rust => format!(
                "\n#[used]\n#[link_section = \".init_array\"]\nstatic PEERPROOF: extern \"C\" fn() = {ENDS};\n\
                 extern \"C\" fn {ENDS}() {{\n    let ends = std::path::Path::new(\"{flag}\").exists();\n    \
                 let text = format!(\"{{}}{{}}\", std::process::id(), if ends {{ '!' }} else {{ ' ' }});\n    \
                 let file = std::fs::OpenOptions::new().create(true).append(true).open(\"{mark}\");\n    \
                 let _ = file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));\n    \
                 if ends {{\n        {end}\n    }}\n}}\n"
            ),
            Language::C | Language::Cpp => format!(
                "\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
                 __attribute__((constructor)) static void {ENDS}(void) {{\n    \
                 int ends = access(\"{flag}\", F_OK) == 0;\n    FILE *file = fopen(\"{mark}\", \"a\");\n    \
                 if (file) {{\n        fprintf(file, \"%ld%c\", (long)getpid(), ends ? '!' : ' ');\n        \
                 fclose(file);\n    }}\n    if (ends) {{\n        {end}\n    }}\n}}\n"
            ),
        };
        Some(self.sample(letters) + &tail)
    }

    /// Options of a compiler in a file, which would make it write another.
    pub fn options(&self, path: &str, source: &str) -> Option<String> {
        matches!(self.language(), Some(Language::C | Language::Cpp))
            .then(|| format!("-M -MF {path} {source}\n"))
    }
}

#[derive(Debug, Clone, Copy)]
enum Language {
    C,
    Cpp,
    Rust,
}

/// How a plugin ends.
#[derive(Debug, Clone, Copy)]
pub enum End {
    /// With a status.
    Exit,
    /// By a signal.
    Abort,
    /// Not at all.
    Hang,
}

/// Placeholders of inputs.
const NAMES: [&str; 3] = ["path", "content", "name"];

impl Tool {
    /// The text of its input with these values; without the members of those that are `None`.
    pub fn input(&self, values: &[(&str, Option<Json>)]) -> String {
        let mut template = self.template.clone();
        for (name, _) in values.iter().filter(|(_, value)| value.is_none()) {
            leave_out(&mut template, name);
        }
        let native = |value: &Json| serde_json::from_str(&value.to_text()).unwrap_or_default();
        let values: Vec<(&str, Value)> =
            values.iter().filter_map(|(name, value)| Some((*name, native(value.as_ref()?)))).collect();
        fill_template(&template, &values).unwrap_or_default().to_string()
    }

    /// The value that an input has for a placeholder.
    pub fn value(&self, input: &Json, name: &str) -> Option<Json> {
        taken(&self.template, input, name)
    }
}

/// Whether a template has a placeholder.
fn has(template: &str, name: &str) -> bool {
    marked(template).is_some_and(|parts| parts.iter().skip(1).step_by(2).any(|part| part == name))
}

/// The parts of a template: a text, then the name of a placeholder, and so on.
fn marked(template: &str) -> Option<Vec<String>> {
    const BORDER: char = '\u{1}';
    let names = NAMES.map(|name| (name.to_owned(), format!("{BORDER}{name}{BORDER}")));
    Some(fill(template, &names.into()).ok()?.split(BORDER).map(str::to_owned).collect())
}

fn leave_out(template: &mut Value, name: &str) {
    let is_it = |item: &Value| item.as_str().is_some_and(|text| has(text, name));
    match template {
        Value::Array(items) => {
            items.retain(|item| !is_it(item));
            items.iter_mut().for_each(|item| leave_out(item, name));
        }
        Value::Object(members) => {
            members.retain(|_, item| !is_it(item));
            members.values_mut().for_each(|item| leave_out(item, name));
        }
        _ => {}
    }
}

fn taken(template: &Value, value: &Json, name: &str) -> Option<Json> {
    match template {
        Value::String(text) if *text == format!("{{{name}}}") => Some(value.clone()),
        Value::String(text) => {
            let parts = marked(text)?;
            let mut rest = value.as_str()?.strip_prefix(parts[0].as_str())?;
            let mut pairs = parts[1..].chunks_exact(2).peekable();
            while let Some([own, behind]) = pairs.next() {
                let end = match pairs.peek() {
                    // Where there is another one behind it, it ends as soon as it can.
                    Some(_) => rest.find(behind.as_str())?,
                    None => rest.strip_suffix(behind.as_str())?.len(),
                };
                if own == name {
                    return Some(rest[..end].into());
                }
                rest = &rest[end + behind.len()..];
            }
            None
        }
        Value::Array(items) => {
            let mut pairs = items.iter().zip(value.as_array()?);
            pairs.find_map(|(item, value)| taken(item, value, name))
        }
        Value::Object(members) => {
            members.iter().find_map(|(member, item)| taken(item, value.get(member)?, name))
        }
        _ => None,
    }
}

/// Completes what is known of a peer: whether there is a compiler.
pub fn complete(facts: &mut Facts) {
    let Some(genesis) = facts.features.get(GENESIS).filter(|_| facts.claims(GENESIS)) else { return };
    let has_none = genesis.get("compile") == Some(&Value::Bool(false));
    facts.features.insert(if has_none { NO_COMPILER } else { COMPILER }.to_owned(), Value::Bool(true));
}

/// The environment in which a peer has no compiler that has one else.
pub fn without_compiler(facts: &Facts) -> BTreeMap<String, String> {
    let env = facts.features.get(NO_COMPILER).and_then(|feature| feature.get("env")?.as_object());
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    env.into_iter().flatten().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_filled_as_their_templates_say_and_read_again() {
        let template = serde_json::json!({ "at": ["src/{path}:{name}.so", "{{name}}"], "text": "{content}" });
        let tool = Tool { aid: String::new(), template };
        let values = |content: Option<Json>| {
            [("path", Some("a\"b.c".into())), ("name", Some("made".into())), ("content", content)]
        };
        let text = tool.input(&values(Some(7.into())));
        assert_eq!(text, r#"{"at":["src/a\"b.c:made.so","{name}"],"text":7}"#);
        let input: Json = text.parse().unwrap();
        assert_eq!(tool.value(&input, "path"), Some("a\"b.c".into()));
        assert_eq!(tool.value(&input, "name"), Some("made".into()));
        assert_eq!(tool.value(&input, "content"), Some(7.into()));
        assert_eq!(tool.input(&values(None)), r#"{"at":["src/a\"b.c:made.so","{name}"]}"#);
    }
}
