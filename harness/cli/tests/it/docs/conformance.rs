// tests/conformance.rs
fn main() -> Result<(), peerproof::SuiteError> {
    peerproof::Suite::from_config("peerproof.toml")?
        .command("serve", [env!("CARGO_BIN_EXE_peerproof"), "--serve"])?     // a binary of this package
        .run()
}
