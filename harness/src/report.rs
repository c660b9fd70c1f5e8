//! Reports: the only code that prints.
