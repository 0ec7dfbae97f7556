//! Messages in and out over a [`Socket`], and the first words of a connection.

use super::{
    error::{denied, of_login, said},
    socket::{Socket, tls_failed},
};
use crate::sql::address::{Address, CONNECT_WITHIN, password_hint, unreachable};
use bytes::BytesMut;
use engine::{EngineError, ErrorKind};
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::AuthenticationSaslBody;
use postgres_protocol::{
    authentication::{
        md5_hash,
        sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256},
    },
    message::{
        backend::{ErrorFields, Message},
        frontend,
    },
};
use rustls::ClientConfig;
use std::{
    io::{self, Read, Write},
    sync::Arc,
};

/// How much is read at once.
const READ: usize = 16 << 10;

/// See the module.
pub(super) struct Wire {
    socket: Socket,
    input: BytesMut,
    chunk: Box<[u8]>,
    /// Messages that [`Wire::send`] will send.
    pub(super) output: BytesMut,
    /// What the server remarked.
    pub(super) notices: Vec<String>,
    /// The server, for messages.
    pub(super) place: String,
    /// Process and key by which the server knows this connection.
    pub(super) process: (i32, i32),
}

impl Wire {
    /// Connects and logs in.
    ///
    /// # Errors
    /// Where the server can't be reached or does not let us in.
    pub(super) fn open(address: &Address, tls: &Arc<ClientConfig>) -> Result<Self, EngineError> {
        let mut wire = Wire {
            socket: Socket::connect(address, tls)?,
            input: BytesMut::with_capacity(READ),
            chunk: vec![0; READ].into_boxed_slice(),
            output: BytesMut::with_capacity(READ),
            notices: Vec::new(),
            place: address.place(),
            process: (0, 0),
        };
        let user = address.user.as_deref().unwrap_or("postgres");
        let mut words = vec![("client_encoding", "UTF8"), ("application_name", "annvil"), ("user", user)];
        words.extend(address.database.as_deref().map(|name| ("database", name)));
        frontend::startup_message(words, &mut wire.output).map_err(|e| wire.broken(&e))?;
        wire.send()?;
        wire.log_in(user, address)?;
        wire.socket.wait_for_ever().map_err(|e| wire.broken(&e))?;
        Ok(wire)
    }

    fn log_in(&mut self, user: &str, address: &Address) -> Result<(), EngineError> {
        let password = || {
            let wanted = || {
                let text =
                    format!("{}: the server wants a password; {}", address.place(), password_hint(false));
                EngineError::new(ErrorKind::Denied, text)
            };
            address.password.as_ref().map(|p| p.reveal().as_bytes()).ok_or_else(wanted)
        };
        let lacking = |what: &str| {
            Err(denied(&address.place(), &format!("the server asks for {what}, which Annvil does not speak")))
        };
        loop {
            match self.receive()? {
                Message::AuthenticationOk => {}
                Message::AuthenticationCleartextPassword => {
                    frontend::password_message(password()?, &mut self.output).map_err(|e| self.broken(&e))?;
                    self.send()?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let hash = md5_hash(user.as_bytes(), password()?, body.salt());
                    frontend::password_message(hash.as_bytes(), &mut self.output)
                        .map_err(|e| self.broken(&e))?;
                    self.send()?;
                }
                Message::AuthenticationSasl(body) => self.scram(&body, password()?, address)?,
                Message::BackendKeyData(body) => self.process = (body.process_id(), body.secret_key()),
                Message::ReadyForQuery(_) => return Ok(()),
                Message::ErrorResponse(body) => return Err(of_login(body.fields(), address)),
                Message::AuthenticationGss | Message::AuthenticationKerberosV5 => return lacking("Kerberos"),
                Message::AuthenticationSspi | Message::AuthenticationScmCredential => {
                    return lacking("the operating system's word");
                }
                _ => return Err(self.unexpected()),
            }
        }
    }

    fn scram(
        &mut self,
        body: &AuthenticationSaslBody,
        password: &[u8],
        address: &Address,
    ) -> Result<(), EngineError> {
        let known = body.mechanisms().any(|name| Ok(name == SCRAM_SHA_256)).map_err(|e| self.broken(&e))?;
        if !known {
            return Err(denied(&self.place, "the server offers no SCRAM-SHA-256"));
        }
        let mut scram = ScramSha256::new(password, ChannelBinding::unsupported());
        frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), &mut self.output)
            .map_err(|e| self.broken(&e))?;
        self.send()?;
        loop {
            match self.receive()? {
                Message::AuthenticationSaslContinue(body) => {
                    scram.update(body.data()).map_err(|e| self.broken(&e))?;
                    frontend::sasl_response(scram.message(), &mut self.output)
                        .map_err(|e| self.broken(&e))?;
                    self.send()?;
                }
                Message::AuthenticationSaslFinal(body) => {
                    let unproven = |e: io::Error| {
                        denied(&self.place, &format!("the server does not know the password: {e}"))
                    };
                    return scram.finish(body.data()).map_err(unproven);
                }
                Message::ErrorResponse(body) => return Err(of_login(body.fields(), address)),
                _ => return Err(self.unexpected()),
            }
        }
    }

    /// Sends what stands in `output`.
    ///
    /// # Errors
    /// Where the connection is broken.
    pub(super) fn send(&mut self) -> Result<(), EngineError> {
        let sent = self.socket.write_all(&self.output).and_then(|()| self.socket.flush());
        self.output.clear();
        self.after_sending(sent)
    }

    /// Sends bytes that are messages already, beside `output`.
    ///
    /// # Errors
    /// As [`Wire::send`].
    pub(super) fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        let sent = self.socket.write_all(bytes);
        self.after_sending(sent)
    }

    /// Where sending failed, the server may have said why before it closed.
    fn after_sending(&mut self, sent: io::Result<()>) -> Result<(), EngineError> {
        sent.map_err(|error| self.last_words().unwrap_or_else(|| self.broken(&error)))
    }

    /// The next message that is an answer; remarks on the way are kept.
    ///
    /// # Errors
    /// Where the connection is broken.
    pub(super) fn receive(&mut self) -> Result<Message, EngineError> {
        loop {
            while let Some(message) = Message::parse(&mut self.input).map_err(|e| self.broken(&e))? {
                match message {
                    Message::NoticeResponse(body) => self.notices.extend(remark(body.fields())),
                    Message::ParameterStatus(_) | Message::NotificationResponse(_) => {}
                    answer => return Ok(answer),
                }
            }
            let read = loop {
                match self.socket.read(&mut self.chunk) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    other => break other,
                }
            };
            match read {
                Ok(0) => {
                    let text = format!("{}: the server closed the connection", self.place);
                    return Err(EngineError::new(ErrorKind::Unreachable, text));
                }
                Ok(count) => self.input.extend_from_slice(&self.chunk[..count]),
                Err(error) => return Err(self.broken(&error)),
            }
        }
    }

    /// Reads to the end of the answer, and gives the error in it, if any. `each` sees the other messages; an
    /// error of its own is kept too, and the rest is read all the same, so that the connection stays usable.
    ///
    /// # Errors
    /// What the server says, or a broken connection.
    pub(super) fn finish(
        &mut self,
        mut each: impl FnMut(&Message) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let mut fault: Option<EngineError> = None;
        loop {
            match self.receive()? {
                Message::ReadyForQuery(_) => return fault.map_or(Ok(()), Err),
                Message::ErrorResponse(body) => fault = fault.or(Some(said(body.fields(), &self.place))),
                message => {
                    if fault.is_none()
                        && let Err(own) = each(&message)
                    {
                        fault = Some(own);
                    }
                }
            }
        }
    }

    /// What the server said before it closed the connection, if it did.
    fn last_words(&mut self) -> Option<EngineError> {
        loop {
            match self.receive() {
                Ok(Message::ErrorResponse(body)) => return Some(said(body.fields(), &self.place)),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    pub(super) fn broken(&self, error: &io::Error) -> EngineError {
        let said = error.to_string();
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                unreachable(&self.place, &format!("no answer within {} s", CONNECT_WITHIN.as_secs()))
            }
            // A server that refuses our certificate says so when the handshake is over.
            _ if said.contains("alert") || said.contains("certificate") => tls_failed(&self.place, &said),
            _ => {
                let text = format!("{}: the connection broke: {said}", self.place);
                EngineError::new(ErrorKind::Unreachable, text)
            }
        }
    }

    pub(super) fn unexpected(&self) -> EngineError {
        let text = format!("{}: the server's answer is not PostgreSQL's protocol", self.place);
        EngineError::new(ErrorKind::WrongAnswer, text)
    }
}

/// A remark in a line: message and hint.
fn remark(fields: ErrorFields<'_>) -> Option<String> {
    let (mut message, mut hint) = (None, None);
    let each = |field: postgres_protocol::message::backend::ErrorField<'_>| {
        let text = || Some(String::from_utf8_lossy(field.value_bytes()).into_owned());
        match field.type_() {
            b'M' => message = text(),
            b'H' => hint = text(),
            _ => {}
        }
        Ok(())
    };
    fields.for_each(each).ok()?;
    Some(match hint {
        Some(hint) => format!("{}; {hint}", message?),
        None => message?,
    })
}
