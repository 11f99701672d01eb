//! The address of the container engine.

use std::env;
use std::path::{Path, PathBuf};

/// Docker's own socket.
const DOCKER_SOCKET: &str = "/var/run/docker.sock";
/// Podman's system socket; that of a user is in `$XDG_RUNTIME_DIR`.
const PODMAN_SOCKET: &str = "/run/podman/podman.sock";

/// Why an address cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("`{0}` is not an address of a container engine on this host: unix:///path")]
    Malformed(String),
    #[error("no container engine is found on this host")]
    NoneFound,
}

/// The socket of an address such as `unix:///run/podman/podman.sock`, or of a bare absolute path.
pub fn socket_of(address: &str) -> Result<PathBuf, AddressError> {
    let path = Path::new(address.strip_prefix("unix://").unwrap_or(address));
    if path.is_absolute() { Ok(path.to_owned()) } else { Err(AddressError::Malformed(address.to_owned())) }
}

/// The engine's socket: the one that the owner named, otherwise that of `DOCKER_HOST`, otherwise the first that exists.
///
/// It looks each time, because an engine may be installed while the agent runs.
pub fn find(named: Option<&str>) -> Result<PathBuf, AddressError> {
    let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(address) = named.map(str::to_owned).or_else(|| variable("DOCKER_HOST")) {
        return socket_of(&address);
    }
    first_of(variable("XDG_RUNTIME_DIR").as_deref(), |path| path.exists()).ok_or(AddressError::NoneFound)
}

fn first_of(runtime_dir: Option<&str>, is_there: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let of_user = runtime_dir.map(|dir| Path::new(dir).join("podman/podman.sock"));
    let known = [DOCKER_SOCKET, PODMAN_SOCKET].map(PathBuf::from);
    known.into_iter().chain(of_user).find(|path| is_there(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_socket_of_this_host() {
        assert_eq!(socket_of("unix:///run/a.sock"), Ok("/run/a.sock".into()));
        assert_eq!(socket_of("/run/a.sock"), Ok("/run/a.sock".into()));
        for address in ["tcp://10.0.0.1:2375", "unix://a.sock", "", "ssh://host"] {
            assert_eq!(socket_of(address), Err(AddressError::Malformed(address.to_owned())));
        }
    }

    #[test]
    fn dockers_socket_comes_before_podmans() {
        let user = "/run/user/1000/podman/podman.sock";
        let find =
            |there: &[&str]| first_of(Some("/run/user/1000"), |path| there.iter().any(|it| path == Path::new(it)));

        assert_eq!(find(&[DOCKER_SOCKET, PODMAN_SOCKET]), Some(DOCKER_SOCKET.into()));
        assert_eq!(find(&[user, PODMAN_SOCKET]), Some(PODMAN_SOCKET.into()));
        assert_eq!(find(&[user]), Some(user.into()));
        assert_eq!(find(&[]), None);
    }
}
