//! Explains errors of TLS in words that say what to do. The agent and the service both use them.

use rustls::{CertificateError, Error, InvalidMessage};

/// Why there is no TLS with a server. `trusting` says how to trust an authority that the system does not know.
pub fn of(error: &Error, trusting: &str) -> String {
    match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "what answers on this port does not speak TLS".to_owned()
        }
        Error::InvalidCertificate(fault) => of_certificate(fault, trusting),
        Error::PeerIncompatible(_) => "the other side offers neither TLS 1.2 nor TLS 1.3".to_owned(),
        other => other.to_string(),
    }
}

fn of_certificate(fault: &CertificateError, trusting: &str) -> String {
    match fault {
        CertificateError::UnknownIssuer => {
            format!("no authority that is trusted here has signed its certificate; {trusting}")
        }
        // The library has no variant for this error.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            format!("its certificate is an authority's own; it needs one that the authority has signed; {trusting}")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired, or this machine's clock is ahead".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet, or this machine's clock is behind".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, .. } => {
            format!("its certificate is for another name than {}", expected.to_str())
        }
        CertificateError::NotValidForName => "its certificate is for another name".to_owned(),
        CertificateError::BadSignature => "its certificate's signature is wrong".to_owned(),
        CertificateError::BadEncoding => "its certificate cannot be read".to_owned(),
        other => Error::InvalidCertificate(other.clone()).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    const TRUSTING: &str = "--ca-file names one of your own";

    fn told(fault: CertificateError) -> String {
        of(&Error::InvalidCertificate(fault), TRUSTING)
    }

    #[test]
    fn a_certificate_is_described_in_words() {
        let (time, not_after) = (UnixTime::since_unix_epoch(std::time::Duration::from_secs(9)), UnixTime::now());
        let expected = ServerName::try_from("box.example").unwrap();

        assert!(told(CertificateError::UnknownIssuer).ends_with(TRUSTING));
        let expired = CertificateError::ExpiredContext { time, not_after };
        assert_eq!(told(expired), told(CertificateError::Expired));
        let early = CertificateError::NotValidYetContext { time, not_before: not_after };
        assert_eq!(told(early), told(CertificateError::NotValidYet));
        let other = CertificateError::NotValidForNameContext { expected, presented: vec!["DnsName(\"x\")".to_owned()] };
        assert_eq!(told(other), "its certificate is for another name than box.example");
        for fault in [CertificateError::Expired, CertificateError::NotValidYet, CertificateError::BadSignature] {
            assert!(!told(fault.clone()).contains("invalid peer certificate"), "{fault:?}");
        }
        // Other errors keep the library's words.
        assert!(told(CertificateError::Revoked).contains("Revoked"));
    }
}
