//! The sender of notifications, and the key by which push services know it.

use secrecy::SecretString;

use crate::auth::secret::{self, PUSH, SecretError};
use crate::config::Config;
use crate::notify::mail::SmtpConfig;
use crate::notify::push::PushKey;
use crate::notify::sender::{Sender, SenderConfig, SenderError};

/// Returns the private key for push messages, if the service has one.
pub(super) fn push_secret(config: &Config) -> Result<Option<SecretString>, SecretError> {
    if config.push_key_file.is_none() && !config.needs_data_directory() {
        return Ok(None);
    }
    secret::obtain(PUSH, config.push_key_file.as_deref(), &config.data_dir).map(Some)
}

/// Creates the sender of notifications.
pub(super) fn sender(config: &Config, push_secret: Option<&SecretString>) -> Result<Sender, SenderError> {
    let smtp = config.smtp_url.clone().zip(config.smtp_from.clone()).map(|(url, from)| SmtpConfig { url, from });
    Sender::new(SenderConfig {
        networks: config.notification_networks.clone(),
        ca_file: config.notification_ca_file.clone(),
        smtp,
        push_key: push_secret.map(PushKey::new).transpose()?,
        public_url: config.public_url.clone(),
        limits: config.timing.notify.limits,
    })
}
