//! `execute_task` (RPC "Task Execution Request"): generates text for a task by rules, at once or as a stream.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::method::{Answer, Call, Step, Task, World};
use super::params::Members;
use super::reply::Failure;
use crate::json::write_str;
use crate::machine::Millis;

/// Value of `metadata.model`.
pub(crate) const MODEL: &str = "peerproof-reference";

pub(super) const TASK_TYPES: [&str; 4] = ["code_generation", "refactoring", "analysis", "testing"];

/// Longest quotation of the prompt in the output, in characters.
const QUOTED_CHARS_MAX: usize = 400;
/// Number of words of a prompt that form a function name.
const NAME_WORDS_MAX: usize = 4;
/// Largest number of context names in the output.
const MENTIONED_MAX: usize = 20;
/// Longest configurable pause between two chunks, in ms.
const PACE_MS_MAX: i64 = 60_000;

/// Parsed params.
struct Order {
    task_type: &'static str,
    prompt: String,
    language: String,
    notes: Vec<String>,
    streams: bool,
    /// Pause between two chunks in ms. This option of the reference makes a stream last long enough to be observed.
    pace_ms: u64,
    timeout_ms: u64,
}

fn read(call: &Call<'_>) -> Result<Order, Failure> {
    let params = call.params.named(call.limits)?;
    let timeout_ms = params.timeout_ms;
    let params = params.members();
    let task_type = params.one_of("task_type", &TASK_TYPES)?;
    let prompt = params.string("prompt")?.into_owned();
    let context = params.optional_object("context")?;
    let mut notes = Vec::new();
    note(&mut notes, "files", &context.optional_strings("files")?);
    note(&mut notes, "dependencies", &context.optional_strings("dependencies")?);
    let folder = context.optional_string("current_directory")?;
    note(&mut notes, "directory", folder.as_slice());
    let constraints = context.optional_array("constraints")?;
    if !constraints.is_empty() {
        notes.push(format!("constraints: {}", constraints.len()));
    }
    let options: Members<'_> = params.optional_object("options")?;
    let language = options.optional_string("language")?.unwrap_or(Cow::Borrowed("text"));
    for name in ["framework", "style_guide"] {
        note(&mut notes, name, options.optional_string(name)?.as_slice());
    }
    let pace_ms = options.optional_integer("pace_ms", 0..=PACE_MS_MAX)?.unwrap_or_default();
    Ok(Order {
        task_type,
        prompt,
        language: clipped(&language).into_owned(),
        notes,
        streams: options.optional_bool("stream")?,
        pace_ms: u64::try_from(pace_ms).unwrap_or_default(),
        timeout_ms,
    })
}

fn note(notes: &mut Vec<String>, what: &str, names: &[Cow<'_, str>]) {
    if !names.is_empty() {
        let shown: Vec<_> = names.iter().take(MENTIONED_MAX).map(|name| clipped(name)).collect();
        notes.push(format!("{what}: {}", shown.join(", ")));
    }
}

/// Beginning of a text, on one line.
pub(super) fn clipped(text: &str) -> Cow<'_, str> {
    let end = text.char_indices().nth(QUOTED_CHARS_MAX).map_or(text.len(), |(at, _)| at);
    let head = text.get(..end).unwrap_or_default();
    if head.contains(|c: char| c.is_control()) {
        Cow::Owned(head.chars().map(|c| if c.is_control() { ' ' } else { c }).collect())
    } else {
        Cow::Borrowed(head)
    }
}

/// Runs the method.
pub(super) fn execute_task(call: &Call<'_>, world: &mut World) -> Answer {
    let mut order = match read(call) {
        Ok(order) => order,
        Err(failure) => return Answer::Done(Err(failure)),
    };
    for (what, context_type) in
        [("known files", "file"), ("known dependencies", "dependency"), ("state", "state")]
    {
        let names: Vec<_> =
            world.context.names(context_type).take(MENTIONED_MAX).map(|name| name.to_lossy()).collect();
        note(&mut order.notes, what, &names);
    }
    let code = code(&order);
    let result = result(&order, &code, 0);
    if !order.streams && order.pace_ms == 0 {
        return Answer::Done(Ok(result.into()));
    }
    let chunks: VecDeque<String> = chunks(&code, call.limits.rpc_chunk_bytes_max);
    let task =
        Typing { next_at: call.now, started: call.now, chunks, order_pace_ms: order.pace_ms, code, order };
    Answer::Later { timeout_ms: task.order.timeout_ms, streams: task.order.streams, task: Box::new(task) }
}

/// Task that outputs its code line by line.
struct Typing {
    started: Millis,
    next_at: Millis,
    order_pace_ms: u64,
    chunks: VecDeque<String>,
    code: String,
    order: Order,
}

impl Task for Typing {
    fn poll(&mut self, now: Millis) -> Step {
        if now < self.next_at {
            return Step::WaitUntil(self.next_at);
        }
        match self.chunks.pop_front() {
            Some(chunk) => {
                self.next_at = now + self.order_pace_ms;
                Step::Chunk(chunk)
            }
            None => Step::Done(Ok(result(&self.order, &self.code, now.saturating_sub(self.started)).into())),
        }
    }

    fn ends_at(&self) -> Option<Millis> {
        let chunks = u64::try_from(self.chunks.len()).unwrap_or(u64::MAX);
        Some(self.next_at.saturating_add(self.order_pace_ms.saturating_mul(chunks)))
    }

    fn held_bytes(&self) -> usize {
        self.code.len() * 2 + self.order.prompt.len() + size_of::<Self>()
    }
}

/// Splits lines into chunks of at most `bytes_max` bytes: one per line, more for a long line. There is at least one
/// chunk.
fn chunks(code: &str, bytes_max: usize) -> VecDeque<String> {
    let mut chunks = VecDeque::new();
    for line in code.split_inclusive('\n') {
        let mut rest = line;
        while !rest.is_empty() {
            let mut end = rest.len().min(bytes_max.max(4));
            while !rest.is_char_boundary(end) {
                end -= 1;
            }
            let (head, tail) = rest.split_at(end);
            chunks.push_back(head.to_owned());
            rest = tail;
        }
    }
    chunks
}

/// Generated text of a task.
fn code(order: &Order) -> String {
    let prompt = clipped(&order.prompt);
    let comment = match order.language.to_ascii_lowercase().as_str() {
        "python" | "ruby" | "shell" | "bash" | "toml" | "yaml" => "#",
        _ => "//",
    };
    let name = function_name(&order.prompt);
    let mut out = format!("{comment} {prompt}\n");
    match order.task_type {
        "code_generation" => out.push_str(&function(&order.language, &name, comment)),
        "testing" => out.push_str(&function(&order.language, &format!("test_{name}"), comment)),
        "refactoring" => {
            for step in
                ["keep the behaviour under test", "name what is unclear", "split what does two things"]
            {
                out.push_str(&format!("{comment} step: {step}\n"));
            }
        }
        _ => {
            let words = order.prompt.split_whitespace().count();
            let lines = order.prompt.lines().count();
            out.push_str(&format!("{comment} the prompt has {words} words on {lines} lines\n"));
        }
    }
    for note in &order.notes {
        out.push_str(&format!("{comment} {note}\n"));
    }
    out
}

fn function_name(prompt: &str) -> String {
    let words = prompt.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<_> = words.take(NAME_WORDS_MAX).map(|word| clipped(word).to_ascii_lowercase()).collect();
    let name = words.join("_");
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { format!("task_{name}") }
}

fn function(language: &str, name: &str, comment: &str) -> String {
    match language.to_ascii_lowercase().as_str() {
        "python" => format!("def {name}():\n    raise NotImplementedError(\"{name}\")\n"),
        "rust" => format!("fn {name}() {{\n    todo!(\"{name}\")\n}}\n"),
        "javascript" | "typescript" => {
            format!("function {name}() {{\n  throw new Error(\"{name} is not implemented\");\n}}\n")
        }
        _ => format!("{comment} {name}: to be written in {language}\n"),
    }
}

fn result(order: &Order, code: &str, execution_time_ms: Millis) -> Vec<u8> {
    let mut out = b"{\"status\":\"success\",\"output\":{\"code\":".to_vec();
    write_str(&mut out, code);
    out.extend_from_slice(b",\"explanation\":");
    write_str(
        &mut out,
        &format!("{} by rules, from the prompt and what is known of the context", order.task_type),
    );
    let tokens = order.prompt.split_whitespace().count() + code.split_whitespace().count();
    out.extend_from_slice(
        format!(
            ",\"files_modified\":[],\"files_created\":[]}},\"metadata\":{{\
             \"execution_time_ms\":{execution_time_ms},\"tokens_used\":{tokens},\"model\":\"{MODEL}\"}}}}"
        )
        .as_bytes(),
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_keep_every_character() {
        let text = "ab\n€€€€€\n\nlast";
        for bytes_max in 1..20 {
            let chunks = chunks(text, bytes_max);
            assert_eq!(chunks.iter().map(String::as_str).collect::<String>(), text);
            assert!(chunks.iter().all(|chunk| chunk.len() <= bytes_max.max(4) && !chunk.is_empty()));
        }
    }
}
