//! Expectations: checks that are known to fail.
