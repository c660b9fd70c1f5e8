//! Folders of launchers, such as `npx`, `uvx` and `cargo`, which they look for in `HOME`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use super::HOME;

/// Variables that name folders of downloads and tools, each with the default folder below `HOME`.
const FOLDERS: [(&str, &str); 9] = [
    ("ASDF_DATA_DIR", ".asdf"),
    ("CARGO_HOME", ".cargo"),
    ("DENO_DIR", ".cache/deno"),
    ("PYENV_ROOT", ".pyenv"),
    ("RUSTUP_HOME", ".rustup"),
    ("UV_CACHE_DIR", ".cache/uv"),
    ("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python"),
    ("VOLTA_HOME", ".volta"),
    ("npm_config_cache", ".npm"),
];

/// Variables that lead launchers to the existing folders of the caller, whose environment is `variables`. A launcher in
/// a process with another `HOME` would download everything at each start, or not find its tools.
pub(super) fn folders(variables: &BTreeMap<String, OsString>) -> Vec<(String, OsString)> {
    let home = variables.get(HOME).map(Path::new);
    let folder_of = |name: &str, below: &str| match variables.get(name) {
        Some(folder) => Some(folder.clone()),
        None => home.map(|home| home.join(below)).filter(|folder| folder.is_dir()).map(OsString::from),
    };
    let named = FOLDERS.iter().map(|(name, below)| Some(((*name).to_owned(), folder_of(name, below)?)));
    named.flatten().collect()
}

/// Default folder below `HOME` for a variable of a launcher.
pub(crate) fn default_folder(name: &str) -> Option<&'static str> {
    FOLDERS.iter().find(|(known, _)| *known == name).map(|(_, below)| *below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_find_the_existing_folders_of_the_caller() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".npm")).unwrap();
        let mut variables = BTreeMap::from([(HOME.to_owned(), home.path().into())]);
        variables.insert("CARGO_HOME".to_owned(), "/tools/cargo".into());
        let expected =
            [("CARGO_HOME", "/tools/cargo".into()), ("npm_config_cache", home.path().join(".npm"))];
        let expected = expected.map(|(name, folder)| (name.to_owned(), OsString::from(folder)));
        assert_eq!(folders(&variables), expected);
        assert_eq!(folders(&BTreeMap::new()), []);
    }
}
