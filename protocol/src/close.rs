//! WebSocket close codes, and what a peer should do about each.

/// A client loses its connection on purpose, and may come back: what the service keeps of it is kept.
pub const DETACHED: u16 = 4000;
/// The message was not understood: not UTF-8, not decodable, out of range.
pub const MALFORMED: u16 = 4400;
/// The key or token is wrong, expired or revoked. An agent does not reconnect.
pub const UNAUTHORIZED: u16 = 4401;
/// The user may no longer do what the socket is for. A dashboard does not reconnect.
pub const FORBIDDEN: u16 = 4403;
/// The server record was deleted, or a dashboard's user may no longer see it. An agent does not reconnect.
pub const SERVER_DELETED: u16 = 4404;
/// No `auth` message arrived in time.
pub const AUTH_TIMEOUT: u16 = 4408;
/// A newer connection with a key of the same server took over. The older agent must not reconnect at once.
pub const REPLACED: u16 = 4409;
/// The peer said nothing for too long (RFC 6455, 7.4.1: going away): reconnect. Browsers send it when they leave a page.
pub const SILENT: u16 = 1001;
/// A message, or one declared by its frame header, is larger than allowed (RFC 6455, 7.4.1).
pub const TOO_LARGE: u16 = 1009;
/// The service restarts: reconnect with backoff.
pub const RESTARTING: u16 = 1012;
/// The service is overloaded: reconnect with backoff.
pub const OVERLOADED: u16 = 1013;
