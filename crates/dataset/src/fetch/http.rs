//! One request: ask for the rest of a file, sort what comes back.

use super::{FetchOptions, USER_AGENT};
use std::io::Read;
use std::time::Duration;
use ureq::http::{HeaderMap, StatusCode, header};
use ureq::{Agent, Body};

/// Why a request or a transfer brought nothing.
#[derive(Debug)]
pub(super) enum Failure {
    /// Trying this address again is of no use.
    Final(String),
    /// It may work a moment later; the server may ask for a wait.
    Passing(String, Option<Duration>),
    /// What is on disk does not fit what the server has now: begin anew.
    StartOver(String),
}

/// A body that goes on at `offset`.
pub(super) struct Answer {
    /// Position in the file of the first byte of the body.
    pub(super) offset: u64,
    /// Size of the whole file on the server, where it says so.
    pub(super) total: Option<u64>,
    /// What a later request sends as If-Range: a strong ETag, else Last-Modified.
    pub(super) validator: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) body: Box<dyn Read>,
}

/// What to ask for.
pub(super) struct Ask<'a> {
    pub(super) url: &'a str,
    /// Bytes that are there already.
    pub(super) have: u64,
    /// Ask for no byte from here on.
    pub(super) end: Option<u64>,
    /// The validator of those bytes.
    pub(super) validator: Option<&'a str>,
}

/// A client with the timeouts of `options`, the proxy of the environment and rustls.
pub(super) fn agent(options: &FetchOptions) -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .user_agent(USER_AGENT)
        // Ranges are of the file itself, not of a packed form of it.
        .accept_encoding("identity")
        .timeout_resolve(Some(options.timeout))
        .timeout_connect(Some(options.timeout))
        .timeout_send_request(Some(options.timeout))
        .timeout_recv_response(Some(options.timeout))
        .timeout_per_read(Some(options.timeout))
        .build()
        .new_agent()
}

/// Asks for the bytes from `ask.have` on.
pub(super) fn request(agent: &Agent, options: &FetchOptions, ask: &Ask<'_>) -> Result<Answer, Failure> {
    let mut request = agent.get(ask.url);
    if ask.have > 0 || ask.end.is_some() {
        let end = ask.end.map_or(String::new(), |end| end.saturating_sub(1).to_string());
        request = request.header(header::RANGE, format!("bytes={}-{end}", ask.have));
        if let Some(validator) = ask.validator.filter(|_| ask.have > 0) {
            request = request.header(header::IF_RANGE, validator);
        }
    }
    let response = request.call().map_err(|error| of_ureq(&error, options))?;
    let (status, headers) = (response.status(), response.headers().clone());
    match status {
        StatusCode::OK => {
            Ok(answer(0, text(&headers, header::CONTENT_LENGTH), &headers, response.into_body()))
        }
        StatusCode::PARTIAL_CONTENT => partial(ask, &headers, response.into_body()),
        StatusCode::RANGE_NOT_SATISFIABLE => {
            Err(Failure::StartOver(format!("the server has no byte {} of it (status 416)", ask.have)))
        }
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Err(passing(status, &headers)),
        status if status.is_server_error() => Err(passing(status, &headers)),
        status => Err(Failure::Final(format!("the server answers status {status}"))),
    }
}

fn partial(ask: &Ask<'_>, headers: &HeaderMap, body: Body) -> Result<Answer, Failure> {
    let range = text(headers, header::CONTENT_RANGE).unwrap_or_default();
    let Some((start, total)) = content_range(range) else {
        return Err(Failure::Final(format!("the server answers 206 with Content-Range {range:?}")));
    };
    if start != ask.have {
        return Err(Failure::StartOver(format!(
            "the server sends from byte {start}, asked was {}",
            ask.have
        )));
    }
    Ok(answer(start, total, headers, body))
}

fn answer(offset: u64, total: Option<&str>, headers: &HeaderMap, body: Body) -> Answer {
    let etag = text(headers, header::ETAG).filter(|tag| tag.starts_with('"'));
    let validator = etag.or_else(|| text(headers, header::LAST_MODIFIED)).map(str::to_owned);
    Answer {
        offset,
        total: total.and_then(|total| total.trim().parse().ok()),
        validator,
        content_type: text(headers, header::CONTENT_TYPE).map(str::to_owned),
        body: Box::new(body.into_with_config().limit(u64::MAX).reader()),
    }
}

/// `bytes 5-9/100`: first byte, size as text (none for `*`).
fn content_range(value: &str) -> Option<(u64, Option<&str>)> {
    let (range, total) = value.trim().strip_prefix("bytes")?.trim().split_once('/')?;
    let (start, _) = range.split_once('-')?;
    Some((start.trim().parse().ok()?, Some(total).filter(|total| *total != "*")))
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn passing(status: StatusCode, headers: &HeaderMap) -> Failure {
    let wait = text(headers, header::RETRY_AFTER).and_then(|wait| wait.trim().parse().ok());
    Failure::Passing(format!("the server answers status {status}"), wait.map(Duration::from_secs))
}

/// A failed connection or transfer, in words; a timeout names its option.
pub(super) fn of_ureq(error: &ureq::Error, options: &FetchOptions) -> Failure {
    use ureq::{Error, Timeout};
    let waited = |what: &str| {
        Failure::Passing(format!("{what} in {} s (--fetch-timeout)", options.timeout.as_secs_f64()), None)
    };
    match error {
        Error::Timeout(Timeout::Resolve | Timeout::Connect) => waited("no connection"),
        Error::Timeout(_) => waited("no byte"),
        Error::HostNotFound => Failure::Final("the host is not known; is there a network?".to_owned()),
        Error::BadUri(_) | Error::Http(_) | Error::InvalidProxyUrl | Error::TooManyRedirects => {
            Failure::Final(error.to_string())
        }
        other => Failure::Passing(other.to_string(), None),
    }
}

/// The same for an error while reading a body.
pub(super) fn of_read(error: std::io::Error, options: &FetchOptions) -> Failure {
    use std::io::ErrorKind;
    let inner = ureq::Error::from(error);
    if let ureq::Error::Io(io) = &inner
        && matches!(io.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)
    {
        return stalled(options);
    }
    of_ureq(&inner, options)
}

/// Too little came for too long.
pub(super) fn stalled(options: &FetchOptions) -> Failure {
    let limit = options.timeout.as_secs_f64();
    Failure::Passing(format!("less than 1 KiB came in {limit} s (--fetch-timeout)"), None)
}
