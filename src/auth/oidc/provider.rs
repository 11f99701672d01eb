//! What the provider publishes: its addresses and the keys that it signs with.
//!
//! Read when somebody first needs it, so that the service starts although the provider is away. Then it is kept for
//! [`FRESH_FOR`]; if the provider is away by then, what is known stays in use until [`USABLE_FOR`]. A key that is not known yet has the keys read
//! again, but not more often than [`REREAD_AFTER`]: anybody can send a token that names a new key.

use std::sync::Arc;
use std::time::{Duration, Instant};

use openidconnect::core::{
    CoreAuthDisplay, CoreClaimName, CoreClaimType, CoreClientAuthMethod, CoreGrantType, CoreJsonWebKey,
    CoreJsonWebKeySet, CoreJweContentEncryptionAlgorithm, CoreJweKeyManagementAlgorithm, CoreJwsSigningAlgorithm,
    CoreResponseMode, CoreResponseType, CoreSubjectIdentifierType,
};
use openidconnect::{AdditionalProviderMetadata, DiscoveryError, IssuerUrl, JsonWebKeySet, ProviderMetadata};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::http::{AskError, Http};

/// For how long what the provider publishes is not read again. A key that it withdraws is trusted for that long.
const FRESH_FOR: Duration = Duration::from_secs(10 * 60);

/// For how long what was read is used while the provider is away.
const USABLE_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// For how long a provider that gave no answer is not asked again.
const AWAY_FOR: Duration = Duration::from_secs(3);

/// The shortest time between two readings of the keys because of a key that is not known.
const REREAD_AFTER: Duration = Duration::from_secs(10);

/// Fields of the document that the library does not know.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
pub struct Extra {
    /// Whether the provider names itself when it sends a browser back (RFC 9207).
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl AdditionalProviderMetadata for Extra {}

pub type Metadata = ProviderMetadata<
    Extra,
    CoreAuthDisplay,
    CoreClientAuthMethod,
    CoreClaimName,
    CoreClaimType,
    CoreGrantType,
    CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm,
    CoreJsonWebKey,
    CoreResponseMode,
    CoreResponseType,
    CoreSubjectIdentifierType,
>;

/// Why nothing is known about the provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error("the provider's document cannot be used: {0}")]
    Document(&'static str),
}

/// What the provider publishes, at one time.
#[derive(Debug)]
pub struct Known {
    pub metadata: Metadata,
    read_at: Instant,
}

impl Known {
    /// The algorithms that the provider signs with, and that this service accepts: only those with a public key. With a
    /// shared secret (HS256) the public key could be passed off as the secret, and `none` signs nothing.
    pub fn algorithms(&self) -> Vec<CoreJwsSigningAlgorithm> {
        let announced = self.metadata.id_token_signing_alg_values_supported();
        announced.iter().filter(|algorithm| is_public_key(algorithm)).cloned().collect()
    }

    /// Whether the provider names itself when it sends a browser back.
    pub fn names_itself(&self) -> bool {
        self.metadata.additional_metadata().authorization_response_iss_parameter_supported
    }
}

fn is_public_key(algorithm: &CoreJwsSigningAlgorithm) -> bool {
    use CoreJwsSigningAlgorithm as A;
    match algorithm {
        A::EcdsaP256Sha256
        | A::EcdsaP384Sha384
        | A::EdDsa
        | A::RsaSsaPkcs1V15Sha256
        | A::RsaSsaPkcs1V15Sha384
        | A::RsaSsaPkcs1V15Sha512
        | A::RsaSsaPssSha256
        | A::RsaSsaPssSha384
        | A::RsaSsaPssSha512 => true,
        // The library knows this one and cannot check it.
        A::EcdsaP521Sha512 => false,
        A::HmacSha256 | A::HmacSha384 | A::HmacSha512 | A::None => false,
        _ => false,
    }
}

/// Reads and keeps what the provider publishes; one reading at a time.
pub struct Provider {
    issuer: IssuerUrl,
    http: Arc<Http>,
    known: Mutex<Option<Arc<Known>>>,
    /// When it last gave no answer, and why.
    away: Mutex<Option<(Instant, ProviderError)>>,
    reading: tokio::sync::Mutex<()>,
    reread_at: Mutex<Option<Instant>>,
}

impl Provider {
    pub fn new(issuer: IssuerUrl, http: Arc<Http>) -> Self {
        Self {
            issuer,
            http,
            known: Mutex::default(),
            away: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
            reread_at: Mutex::default(),
        }
    }

    /// What the provider publishes, read if that was long ago.
    pub async fn known(&self) -> Result<Arc<Known>, ProviderError> {
        if let Some(known) = self.fresh() {
            return Ok(known);
        }
        // A caller that waited here finds what the one before has read.
        let _turn = self.reading.lock().await;
        if let Some(known) = self.fresh() {
            return Ok(known);
        }
        let old = self.known.lock().clone().filter(|known| known.read_at.elapsed() < USABLE_FOR);
        if let Some(error) = self.is_away() {
            return old.ok_or(error);
        }
        match self.read().await {
            Ok(known) => {
                *self.away.lock() = None;
                Ok(self.keep(known))
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read what the identity provider publishes");
                *self.away.lock() = Some((Instant::now(), error.clone()));
                old.ok_or(error)
            }
        }
    }

    /// The same with keys that are newer than those of `known`, or none if they were read again only just now.
    pub async fn with_newer_keys(&self, known: &Arc<Known>) -> Option<Arc<Known>> {
        let _turn = self.reading.lock().await;
        let newest = self.known.lock().clone();
        if let Some(newest) = newest.filter(|newest| !Arc::ptr_eq(newest, known)) {
            return Some(newest);
        }
        let is_too_soon = {
            let mut reread_at = self.reread_at.lock();
            let is_too_soon = reread_at.is_some_and(|at| at.elapsed() < REREAD_AFTER);
            if !is_too_soon {
                *reread_at = Some(Instant::now());
            }
            is_too_soon
        };
        if is_too_soon {
            return None;
        }
        match self.keys(known).await {
            Ok(keys) => {
                let metadata = known.metadata.clone().set_jwks(keys);
                Some(self.keep(Known { metadata, read_at: known.read_at }))
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read the keys of the identity provider");
                None
            }
        }
    }

    fn fresh(&self) -> Option<Arc<Known>> {
        self.known.lock().clone().filter(|known| known.read_at.elapsed() < FRESH_FOR)
    }

    fn is_away(&self) -> Option<ProviderError> {
        let away = self.away.lock().clone();
        away.filter(|(since, _)| since.elapsed() < AWAY_FOR).map(|(_, error)| error)
    }

    fn keep(&self, known: Known) -> Arc<Known> {
        let known = Arc::new(known);
        *self.known.lock() = Some(known.clone());
        known
    }

    /// Reads the document, which must be that of this issuer, and the keys.
    async fn read(&self) -> Result<Known, ProviderError> {
        let metadata = Metadata::discover_async(self.issuer.clone(), &*self.http).await.map_err(failed)?;
        let known = Known { metadata, read_at: Instant::now() };
        if known.algorithms().is_empty() {
            return Err(ProviderError::Document("it names no way of signing that this service accepts"));
        }
        if known.metadata.token_endpoint().is_none() {
            return Err(ProviderError::Document("it names no token endpoint"));
        }
        Ok(known)
    }

    async fn keys(&self, known: &Known) -> Result<CoreJsonWebKeySet, ProviderError> {
        JsonWebKeySet::fetch_async(known.metadata.jwks_uri(), &*self.http).await.map_err(failed)
    }
}

/// The reason without what the provider wrote: that could be anything.
fn failed(error: DiscoveryError<AskError>) -> ProviderError {
    match error {
        DiscoveryError::Request(error) => ProviderError::Ask(error),
        DiscoveryError::Parse(_) => ProviderError::Document("it is not what the standard asks for"),
        DiscoveryError::Response(..) => ProviderError::Document("the answer has another status or type"),
        DiscoveryError::UrlParse(_) => ProviderError::Document("an address in it is none"),
        DiscoveryError::Validation(_) => ProviderError::Document("it names another issuer than --oidc-issuer"),
        _ => ProviderError::Document("it could not be read"),
    }
}
