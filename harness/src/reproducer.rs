//! Reproducers: what a failing check leaves for whoever mends the peer.
