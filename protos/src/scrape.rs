//! Answers to scrapes: `GET /metrics` over HTTP/1.1 at the port of a node, for Prometheus and for people.
//!
//! A scraper cannot give the proof of [`crate::proof`]. It shows something else that only those who may look
//! can have:
//!
//! | trust of the port | the scraper shows |
//! |---|---|
//! | secret, on loopback | the bearer token that follows from the secret: [`token`] |
//! | certificates | under TLS, a certificate with a role that has the right ([`crate::rights`]) |
//!
//! Loopback alone is no proof: every user of the machine can call there. The token does not tell the secret,
//! so a scraper that is given the token may look and do nothing else.
//!
//! One request is read and answered, then the connection ends. What is read is bounded in bytes and time.

use crate::caller::Who;
use crate::proof::Secret;
use crate::rights::{self, Admitted};
use std::fmt::Write;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// The longest time for a request and its answer.
const SERVE_WAIT: Duration = Duration::from_secs(5);
/// The form of the answer.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// By what a scraper is let in.
#[derive(Clone, Debug)]
pub(crate) enum Pass {
    /// It must show this token.
    Token(String),
    /// Its certificate must have the right.
    Certificate(Admitted),
}

/// The bearer token of scrapers, for a cluster that shares a secret.
#[must_use]
pub fn token(secret: &Secret) -> String {
    secret.derived(b"tharsis metrics").to_hex()
}

/// A request, as far as it matters.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    is_head: bool,
    path: String,
    bearer: Option<String>,
}

/// Reads one request, of which `begun` was read already, and answers it. `metrics` is asked for the text only
/// if the scraper may see it. Whether it was let in.
///
/// # Errors
/// If the connection breaks off.
pub(crate) async fn serve<S, F>(
    stream: &mut S,
    begun: &[u8],
    pass: &Pass,
    metrics: impl FnOnce() -> F,
) -> io::Result<bool>
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = Option<String>>,
{
    let exchange = async {
        let head = read_head(stream, begun).await?;
        let (is_in, answer) = match parse(&head) {
            None => (true, answer("400 Bad Request", "", "this port answers GET /metrics\n", false)),
            Some(request) => match allow(pass, &request) {
                Err(answer) => (false, answer),
                Ok(()) if request.path != "/metrics" => {
                    (true, answer("404 Not Found", "", "there is /metrics here\n", request.is_head))
                }
                Ok(()) => match metrics().await {
                    Some(text) => (true, answer("200 OK", "", &text, request.is_head)),
                    None => (true, answer("503 Service Unavailable", "", "the node ends\n", request.is_head)),
                },
            },
        };
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        Ok(is_in)
    };
    timeout(SERVE_WAIT, exchange).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// The head of a request, up to its empty line.
async fn read_head<S: AsyncRead + Unpin>(stream: &mut S, begun: &[u8]) -> io::Result<Vec<u8>> {
    let mut head = begun.to_vec();
    let mut part = [0; 1024];
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        let len = stream.read(&mut part).await?;
        if len == 0 || HEAD_BYTES_MAX < head.len() + len {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.extend_from_slice(&part[..len]);
    }
    Ok(head)
}

fn parse(head: &[u8]) -> Option<Request> {
    let text = std::str::from_utf8(head).ok()?;
    let (head, _) = text.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if !version.starts_with("HTTP/1.") || words.next().is_some() {
        return None;
    }
    let headers = lines.filter_map(|line| line.split_once(':'));
    let mut given = headers.filter(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let bearer = given.next().and_then(|(_, value)| {
        let (scheme, token) = value.trim().split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
    });
    let path = target.split(['?', '#']).next().unwrap_or_default().to_owned();
    Some(Request { is_head: method == "HEAD", path, bearer })
}

/// Whether a scraper may look; otherwise the answer to it.
fn allow(pass: &Pass, request: &Request) -> Result<(), String> {
    let is_head = request.is_head;
    match pass {
        Pass::Token(token) => {
            // Equality of hashes takes the same time wherever they differ.
            let hash = |text: &str| blake3::hash(text.as_bytes());
            if request.bearer.as_deref().is_some_and(|shown| hash(shown) == hash(token)) {
                return Ok(());
            }
            let text = "show as a bearer token what is in the file cluster.metrics-token beside the cluster's secret\n";
            Err(answer("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", text, is_head))
        }
        Pass::Certificate(admitted) if matches!(admitted.caller.who, Who::Certified(_)) => {
            rights::check_scrape(admitted).map_err(|why| {
                let is_early = why.code() == tonic::Code::Unavailable;
                let status = if is_early { "503 Service Unavailable" } else { "403 Forbidden" };
                answer(status, "", &format!("{}\n", why.message()), is_head)
            })
        }
        Pass::Certificate(_) => {
            let text = "show a certificate of this cluster; the role observer suffices\n";
            Err(answer("401 Unauthorized", "", text, is_head))
        }
    }
}

fn answer(status: &str, headers: &str, body: &str, is_head: bool) -> String {
    let len = body.len();
    let mut text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {TEXT_FORMAT}\r\nContent-Length: {len}\r\nConnection: close\r\n{headers}\r\n"
    );
    if !is_head {
        // Writing to a string does not fail.
        let _written = text.write_str(body);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Caller;
    use crate::proof::Purpose;
    use crate::revoked::Revoked;
    use std::sync::Arc;
    use tharsis_identity::{MachineId, Role, Subject};

    async fn asked(request: &str, pass: &Pass) -> (bool, String) {
        let (mut here, mut there) = tokio::io::duplex(64 << 10);
        let (begun, rest) = request.as_bytes().split_at(8);
        there.write_all(rest).await.unwrap();
        let metrics = || async { Some("up 1\n".to_owned()) };
        let is_in = serve(&mut here, begun, pass, metrics).await.unwrap();
        let mut heard = String::new();
        there.read_to_string(&mut heard).await.unwrap();
        (is_in, heard)
    }

    fn certificate(who: Who) -> Pass {
        let caller = Caller { purpose: Purpose::Calls, who };
        Pass::Certificate(Admitted { caller, revoked: Revoked::nobody(), counts: Arc::default() })
    }

    fn pass() -> Pass {
        Pass::Token("sesame".to_owned())
    }

    #[tokio::test]
    async fn who_shows_the_token_gets_the_text() {
        let request = "GET /metrics?a=b HTTP/1.1\r\nHost: a\r\nauthorization: bearer sesame\r\n\r\n";
        let (is_in, heard) = asked(request, &pass()).await;
        assert!(
            is_in && heard.starts_with("HTTP/1.1 200 OK\r\n") && heard.ends_with("\r\n\r\nup 1\n"),
            "{heard}"
        );
        assert!(heard.contains("version=0.0.4") && heard.contains("Content-Length: 5\r\n"), "{heard}");
        let (_, heard) = asked(&request.replace("GET", "HEAD"), &pass()).await;
        assert!(heard.starts_with("HTTP/1.1 200 OK\r\n") && heard.ends_with("\r\n\r\n"), "{heard}");
    }

    #[tokio::test]
    async fn others_are_told_what_is_missing() {
        for authorization in ["", "Authorization: Bearer nothing\r\n", "Authorization: Basic sesame\r\n"] {
            let request = format!("GET /metrics HTTP/1.1\r\n{authorization}\r\n");
            let (is_in, heard) = asked(&request, &pass()).await;
            assert!(
                !is_in && heard.starts_with("HTTP/1.1 401 ") && heard.contains("metrics-token"),
                "{heard}"
            );
            assert!(!heard.contains("up 1"));
        }
        let other = "GET /other HTTP/1.1\r\nAuthorization: Bearer sesame\r\n\r\n";
        assert!(asked(other, &pass()).await.1.starts_with("HTTP/1.1 404 "));
        assert!(asked("GET / nonsense\r\n\r\n", &pass()).await.1.starts_with("HTTP/1.1 400 "));
    }

    #[tokio::test]
    async fn every_role_may_look_with_its_certificate() {
        let request = "GET /metrics HTTP/1.1\r\n\r\n";
        for role in Role::ALL {
            let subject = Subject { machine: MachineId(1), role, node: None, is_control: false };
            let heard = asked(request, &certificate(Who::Certified(subject))).await.1;
            assert!(heard.starts_with("HTTP/1.1 200 OK"), "{heard}");
        }
        let heard = asked(request, &certificate(Who::Stranger)).await.1;
        assert!(heard.starts_with("HTTP/1.1 401 "), "{heard}");
    }

    #[tokio::test]
    async fn what_is_read_is_bounded() {
        let (mut here, mut there) = tokio::io::duplex(64 << 10);
        there.write_all(&[b'x'; 2 * HEAD_BYTES_MAX]).await.unwrap();
        let refused = serve(&mut here, b"GET /met", &pass(), || async { None }).await;
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn the_token_is_not_the_secret_and_follows_from_it() {
        let [first, second] = [Secret::from_bytes([1; 32]), Secret::from_bytes([2; 32])];
        assert_eq!(token(&first), token(&first));
        assert!(token(&first) != token(&second) && token(&first) != first.to_hex());
    }
}
