//! A private CA, made on the spot.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use std::{
    fs::Permissions,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// A CA with its certificate in a file.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
    pub(crate) file: PathBuf,
}

/// A certificate and its key, in files.
pub(crate) struct Issued {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    /// One called `name`, with its files in `folder`.
    pub(crate) fn new(folder: &Path, name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        let file = folder.join(format!("{name}.pem"));
        std::fs::write(&file, issuer.pem()).expect("a scratch file");
        Authority { issuer, folder: folder.to_owned(), file }
    }

    /// A certificate for a server of these names, or for a client where there are none.
    pub(crate) fn issue(&self, name: &str, hosts: &[&str]) -> Issued {
        let hosts: Vec<String> = hosts.iter().map(|h| (*h).to_owned()).collect();
        let usage = if hosts.is_empty() {
            ExtendedKeyUsagePurpose::ClientAuth
        } else {
            ExtendedKeyUsagePurpose::ServerAuth
        };
        let mut params = CertificateParams::new(hosts).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.issuer).expect("a certificate");
        let issued = Issued {
            cert: self.folder.join(format!("{name}-cert.pem")),
            key: self.folder.join(format!("{name}-key.pem")),
        };
        std::fs::write(&issued.cert, signed.pem()).expect("a scratch file");
        std::fs::write(&issued.key, key.serialize_pem()).expect("a scratch file");
        std::fs::set_permissions(&issued.key, Permissions::from_mode(0o600)).expect("a file of ours");
        issued
    }
}

impl Issued {
    /// Lets the server read its key: as root it runs as someone else.
    pub(crate) fn give_to_the_server(&self) {
        // Where we are not root the server is we.
        let _stays_ours =
            Command::new("chown").arg("nobody").arg(&self.key).stderr(std::process::Stdio::null()).status();
    }
}
