//! The bytes below the protocol: TCP, a local socket, or TLS over TCP.

use crate::sql::address::{Address, CONNECT_WITHIN, TlsMode, unreachable};
use bytes::BytesMut;
use engine::{EngineError, ErrorKind};
use postgres_protocol::message::frontend;
use rustls::{ClientConfig, ClientConnection, StreamOwned, pki_types::ServerName};
use std::{
    io::{self, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    os::unix::net::UnixStream,
    sync::Arc,
    time::Duration,
};

/// A connection's bytes, read and written by the calling thread.
pub(super) enum Socket {
    Tcp(TcpStream),
    Local(UnixStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Socket {
    /// Connects, with TLS as the address asks. Reads wait no longer than a connection may take, until
    /// [`Socket::wait_for_ever`].
    ///
    /// # Errors
    /// Where nobody answers, or TLS fails or is lacking.
    pub(super) fn connect(address: &Address, tls: &Arc<ClientConfig>) -> Result<Self, EngineError> {
        let place = address.place();
        let broken = |e: io::Error| unreachable(&place, &e.to_string());
        if let Some(folder) = &address.socket {
            let stream =
                UnixStream::connect(folder.join(format!(".s.PGSQL.{}", address.port))).map_err(broken)?;
            stream.set_read_timeout(Some(CONNECT_WITHIN)).map_err(broken)?;
            return Ok(Socket::Local(stream));
        }
        let mut stream = tcp(address).map_err(broken)?;
        stream.set_nodelay(true).map_err(broken)?;
        stream.set_read_timeout(Some(CONNECT_WITHIN)).map_err(broken)?;
        if address.tls.mode == TlsMode::Off {
            return Ok(Socket::Tcp(stream));
        }
        let mut request = BytesMut::new();
        frontend::ssl_request(&mut request);
        stream.write_all(&request).map_err(broken)?;
        let mut answer = [0];
        stream.read_exact(&mut answer).map_err(broken)?;
        match (&answer, address.tls.mode) {
            (b"S", _) => encrypted(stream, address, tls),
            (_, TlsMode::Prefer) => Ok(Socket::Tcp(stream)),
            _ => {
                let text = format!("{place}: the server has no TLS, which sslmode demands");
                Err(EngineError::new(ErrorKind::Unreachable, text))
            }
        }
    }

    /// From now on an answer may take as long as it takes; the runner has limits of its own.
    pub(super) fn wait_for_ever(&self) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_read_timeout(None),
            Socket::Local(stream) => stream.set_read_timeout(None),
            Socket::Tls(stream) => stream.sock.set_read_timeout(None),
        }
    }
}

/// The first of the host's addresses that takes the connection.
fn tcp(address: &Address) -> io::Result<TcpStream> {
    let host = address.host.trim_matches(['[', ']']);
    let found: Vec<_> = (host, address.port).to_socket_addrs()?.collect();
    let each = CONNECT_WITHIN / u32::try_from(found.len().max(1)).unwrap_or(1);
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for place in found {
        match TcpStream::connect_timeout(&place, each.max(Duration::from_secs(1))) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// TLS that did not come about.
pub(super) fn tls_failed(place: &str, why: &str) -> EngineError {
    let hint = "name the CA by sslrootcert=FILE, or see sslmode in docs/engines.md";
    EngineError::new(ErrorKind::Unreachable, format!("{place}: TLS failed: {why}; {hint}"))
}

fn encrypted(stream: TcpStream, address: &Address, tls: &Arc<ClientConfig>) -> Result<Socket, EngineError> {
    let place = address.place();
    let fault = |why: String| tls_failed(&place, &why);
    let host = address.host.trim_matches(['[', ']']).to_owned();
    let name = ServerName::try_from(host).map_err(|e| fault(e.to_string()))?;
    let connection = ClientConnection::new(tls.clone(), name).map_err(|e| fault(e.to_string()))?;
    let mut stream = StreamOwned::new(connection, stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).map_err(|e| fault(e.to_string()))?;
    }
    Ok(Socket::Tls(Box::new(stream)))
}

impl Read for Socket {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(out),
            Socket::Local(stream) => stream.read(out),
            Socket::Tls(stream) => stream.read(out),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Local(stream) => stream.write(bytes),
            Socket::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.flush(),
            Socket::Local(stream) => stream.flush(),
            Socket::Tls(stream) => stream.flush(),
        }
    }
}
