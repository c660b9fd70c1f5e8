//! The scratch project: a folder with tools of known effects, created for each conversation.

use super::roles::module_of;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Fixture;

/// Name of the project's fixture.
pub(crate) const PROJECT: &str = "project";

/// Name of the fixture for temporary files, if a conversation looks at them.
pub(crate) const TEMPORARY: &str = "tmp-of-tools";

/// Path of the module that is written for each call that imports it.
pub(crate) const IMPORTED: &str = "project/tools/peerproof_import.py";

/// Text before the JSON specification in that module.
const SPEC: &str = "SPEC = '";

/// Text after it.
const BEHIND: &str = "'\n";

/// Tools of the project, by path.
pub(crate) const TOOLS: [(&str, &str); 5] = [
    ("peerproof_top.py", include_str!("../corpora/project/peerproof_top.py")),
    ("tools/__init__.py", ""),
    ("tools/sample_tool.py", include_str!("../corpora/project/tools/sample_tool.py")),
    ("tools/peerproof.py", include_str!("../corpora/project/tools/peerproof.py")),
    ("tools/peerproof_effects.py", include_str!("../corpora/project/tools/peerproof_effects.py")),
];

/// Fixtures of a project with its tools.
pub(crate) fn fixtures() -> Vec<Fixture> {
    let file = |name: &str, text: &str| Fixture::File {
        name: format!("{PROJECT}/{name}"),
        content: Payload::text(text),
        mode: None,
        kept: false,
    };
    let folder = Fixture::Folder { name: PROJECT.to_owned(), folders: Vec::new(), watched: false };
    [folder].into_iter().chain(TOOLS.map(|(name, text)| file(name, text))).collect()
}

/// A module that plays `role` with `payload` at import, and returns the outcome when called. Modules with different
/// numbers differ in length, so that no compiled form is confused.
pub(crate) fn imported(role: &str, payload: Payload, number: usize) -> Payload {
    let module = module_of(role);
    let head = format!(
        "# {}\nimport json\n\nfrom tools import {module}\n\n{SPEC}{{\"role\":\"{role}\",\"payload\":",
        "x".repeat(number)
    );
    let tail = format!(
        "}}{BEHIND}CALL = json.loads(SPEC)\nSEEN = getattr({module}, CALL[\"role\"])(CALL[\"payload\"])\n\n\n\
         def any(*given, **named):\n    return {{\"any\": 1, **SEEN}}\n"
    );
    Payload::text(head).then(payload).then(Payload::text(tail))
}

/// JSON specification in the module.
pub(crate) fn spec_of(module: &str) -> Option<&str> {
    let (_, behind) = module.split_once(SPEC)?;
    behind.split_once(BEHIND).map(|(spec, _)| spec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::payload::Vars;

    #[test]
    fn what_a_module_does_is_read_from_it() {
        let module =
            imported("fail", Payload::text("{\"type\":\"ValueError\"}"), 3).expand(&Vars::new()).unwrap();
        let module = String::from_utf8(module).unwrap();
        assert_eq!(spec_of(&module), Some("{\"role\":\"fail\",\"payload\":{\"type\":\"ValueError\"}}"));
    }
}
