//! Generators and mutators of toolhost conversations.
