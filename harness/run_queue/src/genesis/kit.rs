//! What a configuration says of the Genesis tools: their aids, their inputs, and the sample of a source.

use std::collections::BTreeMap;

use peerproof_engine::facts::Facts;
use peerproof_engine::json::Json;
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

/// One of the three tools.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Its aid.
    pub aid: String,
    /// Its input with placeholders.
    pub template: Json,
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
            let usual = || members.iter().map(|name| (*name, Json::from(format!("{{{name}}}"))));
            let template = given.and_then(|role| role.get("input")?.to_string().parse().ok());
            Tool {
                aid: aid.map_or_else(|| format!("AID.GENESIS.{}.v1", role.to_uppercase()), str::to_owned),
                template: template.unwrap_or_else(|| Json::object(usual())),
            }
        };
        let feature = facts.features.get(GENESIS);
        let text = |name: &str| feature.and_then(|feature| feature.get(name)?.as_str()).unwrap_or_default();
        let name = text("source").rsplit('/').next().unwrap_or_default();
        Self {
            write: tool("write_file", &["path", "content"]),
            compile: tool("compile", &["path", "name"]),
            load: tool("load", &["name"]),
            aid: text("aid").to_owned(),
            sample: text("text").to_owned(),
            suffix: name.rsplit_once('.').map_or("txt", |(_, suffix)| suffix).to_owned(),
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

    /// The sample of a plugin that ends so, once a file `flag` is there, and leaves a file `mark` before that.
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
                 extern \"C\" fn {ENDS}() {{\n    if std::path::Path::new(\"{flag}\").exists() {{\n        \
                 let _ = std::fs::write(\"{mark}\", \"\");\n        {end}\n    }}\n}}\n"
            ),
            Language::C | Language::Cpp => format!(
                "\n#include <fcntl.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
                 __attribute__((constructor)) static void {ENDS}(void) {{\n    \
                 if (access(\"{flag}\", F_OK) == 0) {{\n        close(creat(\"{mark}\", 0600));\n        {end}\n    }}\n}}\n"
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

impl Tool {
    /// The text of its input with these values; without the members of those that are `None`.
    pub fn input(&self, values: &[(&str, Option<Json>)]) -> String {
        filled(&self.template, values).unwrap_or_default().to_text()
    }

    /// The value that an input has for a placeholder.
    pub fn value<'j>(&self, input: &'j Json, name: &str) -> Option<&'j Json> {
        taken(&self.template, input, &format!("{{{name}}}"))
    }
}

fn filled(template: &Json, values: &[(&str, Option<Json>)]) -> Option<Json> {
    match template {
        Json::String(text) => {
            let whole = values.iter().find(|(name, _)| *text == format!("{{{name}}}"));
            whole.map_or_else(|| Some(template.clone()), |(_, value)| value.clone())
        }
        Json::Array(items) => {
            Some(Json::Array(items.iter().filter_map(|item| filled(item, values)).collect()))
        }
        Json::Object(members) => {
            let members =
                members.iter().filter_map(|(name, item)| Some((name.clone(), filled(item, values)?)));
            Some(Json::Object(members.collect()))
        }
        other => Some(other.clone()),
    }
}

fn taken<'j>(template: &Json, value: &'j Json, placeholder: &str) -> Option<&'j Json> {
    match template {
        Json::String(text) if text == placeholder => Some(value),
        Json::Array(items) => {
            let pairs = items.iter().zip(value.as_array()?);
            pairs.into_iter().find_map(|(item, value)| taken(item, value, placeholder))
        }
        Json::Object(members) => {
            members.iter().find_map(|(name, item)| taken(item, value.get(name)?, placeholder))
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
