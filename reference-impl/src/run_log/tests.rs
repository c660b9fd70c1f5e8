//! Logs, runs and their replay, in this process: the toolhost is the reference's, drivers follow a script.

mod bench;
mod damage;
mod mutants;
mod replays;
mod runs;
