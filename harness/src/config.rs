//! `peerproof.toml`: the configuration of a peer under test.
