//! TLS settings for rustls, from what an address asks for.

use super::address::{Tls, TlsMode};
use engine::{EngineError, ErrorKind};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};
use std::{path::Path, sync::Arc};

/// What rustls needs to know.
///
/// # Errors
/// Where a file can't be read or holds nothing of the kind.
pub(crate) fn client_config(tls: &Tls) -> Result<ClientConfig, EngineError> {
    let provider = Arc::new(ring::default_provider());
    let roots = Arc::new(roots(tls)?);
    let fault = |e: Error| EngineError::caused(ErrorKind::Unsupported, format!("TLS: {e}"), e);
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(fault)?
        .dangerous();
    let verifier: Arc<dyn ServerCertVerifier> = if tls.mode >= TlsMode::VerifyFull {
        WebPkiServerVerifier::builder_with_provider(roots, provider)
            .build()
            .map_err(|e| EngineError::caused(ErrorKind::Unsupported, format!("TLS: {e}"), e))?
    } else {
        Arc::new(Lenient { roots: (tls.mode == TlsMode::VerifyCa).then_some(roots), provider })
    };
    let builder = builder.with_custom_certificate_verifier(verifier);
    match &tls.identity {
        None => Ok(builder.with_no_client_auth()),
        Some((cert, key)) => {
            let key = PrivateKeyDer::from_pem_file(key).map_err(|e| unreadable(key, e))?;
            builder.with_client_auth_cert(certificates(cert)?, key).map_err(fault)
        }
    }
}

fn roots(tls: &Tls) -> Result<RootCertStore, EngineError> {
    let mut roots = RootCertStore::empty();
    match &tls.ca {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(path) => {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|e| unreadable(path, e))?;
            }
        }
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, EngineError> {
    let all: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|e| unreadable(path, e))?.collect();
    let all = all.map_err(|e| unreadable(path, e))?;
    if all.is_empty() {
        let text = format!("{} holds no certificate in PEM", path.display());
        return Err(EngineError::new(ErrorKind::Unsupported, text));
    }
    Ok(all)
}

fn unreadable(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> EngineError {
    EngineError::caused(ErrorKind::Unsupported, format!("{} can't be used: {error}", path.display()), error)
}

/// Checks the chain only, or nothing but that the server holds its certificate's key.
#[derive(Debug)]
struct Lenient {
    roots: Option<Arc<RootCertStore>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
