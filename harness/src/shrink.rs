//! Shrinking: the shortest conversation that still shows a finding.
