//! Tests of logs, runs and replays in this process, with the reference toolhost and scripted drivers.

mod bench;
mod damage;
mod mutants;
mod replays;
mod runs;
