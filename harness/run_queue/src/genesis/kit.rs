//! Configuration of the Genesis tools: their aids, their inputs and the sample source.

use std::collections::BTreeMap;

use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::Json;
use peerproof_engine::drive::peer::{fill, fill_template};
use serde_json::Value;

/// Placeholder for the letters in a sample.
pub(crate) const NONCE: &str = "@NONCE@";

/// Number of letters.
pub(crate) const LETTERS: usize = 16;

/// Feature: a toolhost with the Genesis tools.
pub(crate) const GENESIS: &str = "genesis";

/// Feature: a compiler exists. Derived from the configuration.
pub(crate) const COMPILER: &str = "compiler";

/// Feature: no compiler exists. As a table `{ env }` it gives the environment that hides the compiler.
pub(crate) const NO_COMPILER: &str = "no_compiler";

/// Text that no compiler of any language accepts. Each line is an error of its own.
pub(crate) const GARBAGE: &str = "` ` @@@ (((\n";

/// Name of the function in every plugin that ends at a signal file; it identifies their sources.
pub(crate) const ENDS: &str = "peerproof_ends";

/// Roles of the three tools, in the order of use.
pub(crate) const ROLES: [&str; 3] = ["write_file", "compile", "load"];

/// Default aid of a role's tool.
pub(crate) fn usual_aid(role: &str) -> String {
    format!("AID.GENESIS.{}.v1", role.to_uppercase())
}

/// One of the three tools.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    /// Aid.
    pub aid: String,
    /// Template of its input.
    pub template: Value,
}

/// Tools and sample of a peer.
#[derive(Debug, Clone)]
pub(crate) struct Kit {
    /// Tool that writes a source.
    pub write: Tool,
    /// Tool that compiles a source.
    pub compile: Tool,
    /// Tool that loads a compiled plugin.
    pub load: Tool,
    /// Aid of the sample's tool.
    pub aid: String,
    /// Text of the sample, with a placeholder for the letters.
    pub sample: String,
    /// File name of the sample without its suffix. Some languages bind the content to that name.
    pub stem: String,
    /// File name suffix of the sample, without the dot.
    pub suffix: String,
    /// True if a compiler exists.
    pub compiles: bool,
}

impl Kit {
    /// Reads the configuration.
    pub(crate) fn of(facts: &Facts) -> Self {
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

    /// Sample with these letters.
    pub(crate) fn sample(&self, letters: &str) -> String {
        self.sample.replace(NONCE, letters)
    }

    /// Name of a source file.
    pub(crate) fn file(&self, stem: &str) -> String {
        format!("{stem}.{}", self.suffix)
    }

    /// Name of the sample's file.
    pub(crate) fn sample_file(&self) -> String {
        self.file(&self.stem)
    }

    /// A second path that the sample may be written to.
    pub(crate) fn other_file(&self) -> String {
        match self.language() {
            Some(_) => self.file("again"),
            None => format!("again/{}", self.sample_file()),
        }
    }

    /// Letters of a text that is the sample otherwise; `None` for any other text.
    pub(crate) fn letters(&self, text: &str) -> Option<String> {
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

    /// Source of a program that is not a plugin. `None` for an unknown language.
    pub(crate) fn no_plugin(&self) -> Option<&'static str> {
        self.language().map(|language| match language {
            Language::C | Language::Cpp => "int main(void) { return 3; }\n",
            Language::Rust => "fn main() { std::process::exit(3) }\n",
        })
    }

    /// Source that includes a whole file. `None` for an unknown language.
    pub(crate) fn including(&self, path: &str) -> Option<String> {
        self.language().map(|language| match language {
            Language::C | Language::Cpp => format!("#include \"{path}\"\n"),
            Language::Rust => format!(
                "const TEXT: &str = include_str!(\"{path}\");\nfn main() {{ print!(\"{{TEXT}}\") }}\n"
            ),
        })
    }

    /// Sample of a plugin that ends in this way once the file `flag` exists. Each process that loads it appends its
    /// process id to the file `mark`, and `!` before it ends.
    pub(crate) fn ending(&self, letters: &str, how: End, flag: &str, mark: &str) -> Option<String> {
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

    /// A file of compiler options that would redirect the output. `None` if the language has no such files.
    pub(crate) fn options(&self, path: &str, source: &str) -> Option<String> {
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

/// End of a plugin.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// Exits with a status.
    Exit,
    /// Dies by a signal.
    Abort,
    /// Never returns.
    Hang,
}

/// Placeholders of tool inputs.
const NAMES: [&str; 3] = ["path", "content", "name"];

impl Tool {
    /// Input of the tool with these values. Omits the members whose value is `None`.
    pub(crate) fn input(&self, values: &[(&str, Option<Json>)]) -> String {
        let mut template = self.template.clone();
        for (name, _) in values.iter().filter(|(_, value)| value.is_none()) {
            leave_out(&mut template, name);
        }
        let native = |value: &Json| serde_json::from_str(&value.to_text()).unwrap_or_default();
        let values: Vec<(&str, Value)> =
            values.iter().filter_map(|(name, value)| Some((*name, native(value.as_ref()?)))).collect();
        fill_template(&template, &values).unwrap_or_default().to_string()
    }

    /// Value of a placeholder in an input; the inverse of [`Self::input`].
    pub(crate) fn value(&self, input: &Json, name: &str) -> Option<Json> {
        taken(&self.template, input, name)
    }
}

/// True if a template has the placeholder `name`.
fn has(template: &str, name: &str) -> bool {
    marked(template).is_some_and(|parts| parts.iter().skip(1).step_by(2).any(|part| part == name))
}

/// Parts of a template: literal text and names of placeholders alternate.
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
                    // A placeholder followed by another one ends as early as possible.
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

/// Derives the feature about the compiler.
pub(crate) fn complete(facts: &mut Facts) {
    let Some(genesis) = facts.features.get(GENESIS).filter(|_| facts.claims(GENESIS)) else { return };
    let has_none = genesis.get("compile") == Some(&Value::Bool(false));
    facts.features.insert(if has_none { NO_COMPILER } else { COMPILER }.to_owned(), Value::Bool(true));
}

/// Environment that hides the compiler of a peer.
pub(crate) fn without_compiler(facts: &Facts) -> BTreeMap<String, String> {
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
