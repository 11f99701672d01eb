//! The prefix of the REST API's paths.

use paperclip::actix::web::{Resource, resource};

pub const API: &str = "/api/v1";

/// The resource at a path of the API.
pub fn at(path: &str) -> Resource {
    resource(&format!("{API}{path}"))
}
