//! Resource limits of a driver (`policy` §1 "Resource limits").

/// Limits of the operating system for a driver. Each value is both the soft and the hard limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Processor time, in s.
    pub cpu_s: u64,
    /// Address space, in bytes.
    pub address_space_bytes: u64,
    /// Largest file that it writes, in bytes.
    pub file_bytes: u64,
    /// Open files.
    pub open_files: u64,
    /// Processes of its user.
    pub processes: u64,
}

impl ResourceLimits {
    /// Encodes the limits as letters of `ulimit` with values in the units of `setrlimit`:
    /// `t=2,v=805306368,f=10485760,n=64,u=32`.
    pub fn encode(&self) -> String {
        let Self { cpu_s, address_space_bytes, file_bytes, open_files, processes } = self;
        format!("t={cpu_s},v={address_space_bytes},f={file_bytes},n={open_files},u={processes}")
    }

    /// Decodes the form of [`ResourceLimits::encode`].
    pub fn decode(text: &str) -> Option<Self> {
        let mut values = text.split(',').zip(["t=", "v=", "f=", "n=", "u="]);
        let mut value = || values.next().and_then(|(part, letter)| part.strip_prefix(letter)?.parse().ok());
        let limits = Self {
            cpu_s: value()?,
            address_space_bytes: value()?,
            file_bytes: value()?,
            open_files: value()?,
            processes: value()?,
        };
        (limits.encode() == text).then_some(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_undoes_encoding() {
        let limits = ResourceLimits {
            cpu_s: 2,
            address_space_bytes: 768 << 20,
            file_bytes: 10 << 20,
            open_files: 64,
            processes: 32,
        };
        assert_eq!(limits.encode(), "t=2,v=805306368,f=10485760,n=64,u=32");
        assert_eq!(ResourceLimits::decode(&limits.encode()), Some(limits));
        for bad in [
            "",
            "t=2",
            "t=2,v=1,f=1,n=1",
            "t=2,v=1,f=1,n=1,u=",
            "t=2,v=1,f=1,n=1,u=1,u=2",
            "v=1,t=2,f=1,n=1,u=1",
        ] {
            assert_eq!(ResourceLimits::decode(bad), None, "{bad}");
        }
    }
}
