//! Encrypts the settings of channels, with the channel's id: settings of one channel do not open in another.

use secrecy::SecretString;
use uuid::Uuid;

use super::channel::Settings;
use crate::seal;
pub use crate::seal::SealError;

/// What the key is for.
const PURPOSE: &[u8] = b"notification channel settings";

/// Encrypts and decrypts settings; cheap to clone.
#[derive(Clone)]
pub struct Sealer(seal::Sealer);

impl Sealer {
    pub fn new(secret: &SecretString) -> Result<Self, SealError> {
        seal::Sealer::new(secret, PURPOSE).map(Self)
    }

    /// Returns the encrypted settings of this channel.
    pub fn seal(&self, channel_id: Uuid, settings: &Settings) -> Result<Vec<u8>, SealError> {
        let text = serde_json::to_vec(settings).map_err(|_| SealError::Failed)?;
        self.0.seal(channel_id, text)
    }

    /// Decrypts what [`Self::seal`] returned.
    pub fn open(&self, channel_id: Uuid, sealed: &[u8]) -> Result<Settings, SealError> {
        serde_json::from_slice(&self.0.open(channel_id, sealed)?).map_err(|_| SealError::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer(secret: &str) -> Sealer {
        Sealer::new(&secret.into()).unwrap()
    }

    fn settings() -> Settings {
        Settings::Slack { url: "https://hooks.example.com/T000/B000/token".to_owned() }
    }

    #[test]
    fn sealed_settings_open_with_the_same_secret() {
        let id = Uuid::now_v7();

        let sealed = sealer("one secret").seal(id, &settings()).unwrap();

        assert!(sealer("one secret").open(id, &sealed).unwrap() == settings());
        assert!(!sealed.windows(7).any(|window| window == b"example"));
    }

    #[test]
    fn sealing_the_same_settings_twice_differs() {
        let (id, sealer) = (Uuid::now_v7(), sealer("one secret"));

        assert_ne!(sealer.seal(id, &settings()).unwrap(), sealer.seal(id, &settings()).unwrap());
    }

    #[test]
    fn another_key_opens_nothing() {
        let id = Uuid::now_v7();

        let sealed = sealer("one secret").seal(id, &settings()).unwrap();

        assert!(sealer("another secret").open(id, &sealed).err() == Some(SealError::WrongKey));
    }

    #[test]
    fn settings_sealed_for_one_channel_do_not_open_in_another() {
        let (id, sealer) = (Uuid::now_v7(), sealer("one secret"));

        let sealed = sealer.seal(id, &settings()).unwrap();

        assert!(sealer.open(Uuid::now_v7(), &sealed).err() == Some(SealError::WrongKey));
    }
}
