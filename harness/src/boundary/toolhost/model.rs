//! A model of serve mode: what may come back for any conversation.
