//! The consumer side: what a dispatcher owes the toolhost it starts, and its caller.
