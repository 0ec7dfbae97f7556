//! TLS in front of a PostgreSQL that was built without it, as those of the tests may be: it answers the
//! client's request for TLS, shakes hands, and passes everything on to the server in the clear.

use crate::certificates::{Authority, Issued};
use rustls::{
    RootCertStore, ServerConfig, ServerConnection,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use std::{
    io::{self, ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

/// What a client sends before it begins TLS (PostgreSQL's manual, "SSLRequest").
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Listens on a free port, which it gives, until this process ends. With `clients` only those come in that
/// have a certificate of that CA.
pub(crate) fn before(server: u16, issued: &Issued, clients: Option<&Authority>) -> u16 {
    let config = Arc::new(config(issued, clients));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    thread::spawn(move || {
        for client in listener.incoming().filter_map(Result::ok) {
            let config = config.clone();
            // A connection that fails is what the test looks at from the other side.
            thread::spawn(move || drop(serve(client, server, config)));
        }
    });
    port
}

fn config(issued: &Issued, clients: Option<&Authority>) -> ServerConfig {
    let provider = Arc::new(ring::default_provider());
    let cert = CertificateDer::from_pem_file(&issued.cert).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(&issued.key).expect("a key");
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("versions");
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_file(&ca.file).expect("a certificate")).expect("a CA");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
        }
    };
    builder.with_single_cert(vec![cert], key).expect("a certificate with its key")
}

fn serve(mut client: TcpStream, server: u16, config: Arc<ServerConfig>) -> io::Result<()> {
    let mut request = [0; 8];
    client.read_exact(&mut request)?;
    if request != SSL_REQUEST {
        return Ok(());
    }
    client.write_all(b"S")?;
    let mut server = TcpStream::connect(("127.0.0.1", server))?;
    let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
    tls.set_buffer_limit(None);
    client.set_nonblocking(true)?;
    server.set_nonblocking(true)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let mut idle = true;
        match tls.read_tls(&mut client) {
            Ok(0) => return Ok(()),
            Ok(_) => {
                idle = false;
                if let Err(error) = tls.process_new_packets() {
                    // Why, as an alert for the client.
                    tls.write_tls(&mut client)?;
                    return Err(io::Error::other(error));
                }
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
        while let Ok(n @ 1..) = tls.reader().read(&mut buffer) {
            send(&mut server, &buffer[..n])?;
        }
        match server.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => {
                idle = false;
                tls.writer().write_all(&buffer[..n])?;
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
        while tls.wants_write() {
            match tls.write_tls(&mut client) {
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            }
        }
        if idle {
            thread::sleep(Duration::from_micros(100));
        }
    }
}

/// All of it, into a stream that does not wait.
fn send(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(e) if e.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_micros(100)),
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
