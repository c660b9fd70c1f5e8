//! Results files: the truth about a run, from which every report is rendered.
