//! The version of this program.

pub use signalbox_protocol::agent::Version;

/// The version of this program as it was built. One that could not be read would be newer than any other, so that no build takes the
/// place of this one.
pub fn of_program() -> Version {
    env!("CARGO_PKG_VERSION").parse().unwrap_or_else(|_| Version::newest())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_this_program_can_be_read() {
        assert_eq!(env!("CARGO_PKG_VERSION").parse(), Ok(of_program()));
        assert_eq!(of_program().to_string(), env!("CARGO_PKG_VERSION"));
    }
}
