//! Cases of the toolhost boundary as data.
