//! What an authenticator says (section 6.1).

use super::WebauthnError;
use super::cbor;

/// The longest id of a credential (section 5.8.3 of Level 2).
pub const MAX_CREDENTIAL_ID: usize = 1_023;

/// Bits of the flags.
mod flag {
    pub const USER_PRESENT: u8 = 1;
    pub const USER_VERIFIED: u8 = 1 << 2;
    pub const BACKUP_ELIGIBLE: u8 = 1 << 3;
    pub const BACKED_UP: u8 = 1 << 4;
    pub const CREDENTIAL: u8 = 1 << 6;
    pub const EXTENSIONS: u8 = 1 << 7;
}

/// The data that an authenticator signs.
#[derive(Debug, Clone)]
pub struct AuthenticatorData<'a> {
    pub relying_party_hash: &'a [u8; 32],
    pub is_user_present: bool,
    pub is_user_verified: bool,
    pub sign_count: u32,
    /// The new credential.
    pub credential: Option<Credential<'a>>,
}

/// A new credential.
#[derive(Debug, Clone)]
pub struct Credential<'a> {
    pub id: &'a [u8],
    /// In COSE form.
    pub public_key: &'a [u8],
}

impl<'a> AuthenticatorData<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WebauthnError> {
        Self::read(bytes).ok_or(WebauthnError::MalformedAuthenticatorData)
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (relying_party_hash, rest) = bytes.split_first_chunk::<32>()?;
        let (flags, rest) = rest.split_first()?;
        let (count, mut rest) = rest.split_first_chunk::<4>()?;
        let has = |flag| flags & flag != 0;
        // A key that cannot be copied cannot have been.
        if has(flag::BACKED_UP) && !has(flag::BACKUP_ELIGIBLE) {
            return None;
        }
        let mut credential = None;
        if has(flag::CREDENTIAL) {
            let (read, after) = Credential::read(rest)?;
            (credential, rest) = (Some(read), after);
        }
        if has(flag::EXTENSIONS) {
            (_, rest) = cbor::read(rest).ok()?;
        }
        rest.is_empty().then_some(Self {
            relying_party_hash,
            is_user_present: has(flag::USER_PRESENT),
            is_user_verified: has(flag::USER_VERIFIED),
            sign_count: u32::from_be_bytes(*count),
            credential,
        })
    }
}

impl<'a> Credential<'a> {
    fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        // The model of the authenticator, which is not used.
        let (_, rest) = bytes.split_first_chunk::<16>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (id, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
        let (_, after) = cbor::read(rest).ok()?;
        let public_key = rest.get(..rest.len() - after.len())?;
        let is_sound = (1..=MAX_CREDENTIAL_ID).contains(&id.len());
        is_sound.then_some((Self { id, public_key }, after))
    }
}
