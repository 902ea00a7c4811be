//! A client of the network, which follows nothing and waits for nothing forever.

use std::io::{self, Read};
use std::time::Duration;

use http::{Request, Response};
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

use super::lost::LostAnswer;

const USER_AGENT: &str = concat!("ll-loop/", env!("CARGO_PKG_VERSION"));

/// How long a name, a connection and its TLS may take.
const CONNECT: Duration = Duration::from_secs(20);

/// A proxy.
#[derive(Clone, Debug)]
pub(crate) struct HttpProxy(ureq::Proxy);

impl HttpProxy {
    /// Reads the address of a proxy, and the names that are reached without it.
    pub(crate) fn parse(address: &str, except: &str) -> Option<Self> {
        proxy(address, except).ok().map(Self)
    }
}

fn proxy(address: &str, except: &str) -> Result<ureq::Proxy, ureq::Error> {
    let plain = ureq::Proxy::new(address)?;
    let mut builder = ureq::Proxy::builder(plain.protocol()).host(plain.host()).port(plain.port());
    if let Some(name) = plain.username() {
        builder = builder.username(name);
    }
    if let Some(password) = plain.password() {
        builder = builder.password(password);
    }
    // As for curl, git and the runner, a name stands for the names below it too, with and without a dot before it.
    let names = except.split(',').map(|name| name.trim().trim_start_matches('.'));
    names
        .filter(|name| !name.is_empty())
        .fold(builder, |builder, name| builder.no_proxy(name).no_proxy(&format!(".{name}")))
        .build()
}

/// A client.
#[derive(Clone, Debug)]
pub(crate) struct Client(Agent);

impl Client {
    /// Makes a client. A request ends with the answer to it, whatever that is; `idle` is how long nothing may come or
    /// go, and `whole` is how long it may take altogether.
    pub(crate) fn new(proxy: Option<&HttpProxy>, idle: Duration, whole: Option<Duration>) -> Self {
        // The certificates of the system, as companies with an inspecting proxy have their own
        // authority there.
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let agent = Agent::config_builder()
            .proxy(proxy.map(|proxy| proxy.0.clone()))
            .tls_config(tls)
            .user_agent(USER_AGENT)
            // Callers read the body of an error, which says more than its status.
            .http_status_as_error(false)
            // A redirect would carry the token to another host.
            .max_redirects(0)
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_per_read(Some(idle))
            .timeout_per_write(Some(idle))
            .timeout_per_call(whole)
            .build();
        Self(agent.into())
    }

    /// Sends a request, and returns the answer with its body still to be read.
    pub(crate) fn send(&self, request: Request<Option<&[u8]>>) -> Result<Response<Body>, LostAnswer> {
        let (parts, body) = request.into_parts();
        let answer = match body {
            // A `GET` has no body, which is not the same as an empty one.
            Some(body) => self.0.run(Request::from_parts(parts, body)),
            None => self.0.run(Request::from_parts(parts, ())),
        };
        answer.map(|answer| answer.map(Body)).map_err(lost)
    }
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct Body(ureq::Body);

impl Body {
    /// Returns the length that the server has named.
    pub(crate) fn length(&self) -> Option<u64> {
        self.0.content_length()
    }

    /// Reads it whole, where it is no longer than this.
    pub(crate) fn read_up_to(&mut self, limit: u64) -> Result<Vec<u8>, LostAnswer> {
        self.0.with_config().limit(limit).read_to_vec().map_err(lost)
    }

    /// Returns what it is read from piece by piece.
    pub(crate) fn into_reader(self) -> impl Read {
        self.0.into_reader()
    }

    /// Judges an error of such a reader.
    pub(crate) fn lost(error: io::Error) -> LostAnswer {
        lost(error.into())
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "it is not our enum, and may grow")]
fn lost(error: ureq::Error) -> LostAnswer {
    use ureq::{Error, Timeout};
    match error {
        Error::BadUri(_) | Error::RequireHttpsOnly(_) => LostAnswer::Impossible("invalid URL".to_owned()),
        Error::Http(_) | Error::InvalidProxyUrl | Error::LargeResponseHeader(..) => {
            LostAnswer::Impossible(error.to_string())
        }
        Error::BodyExceedsLimit(limit) => {
            LostAnswer::Impossible(format!("the answer has more than {limit} bytes"))
        }
        Error::HostNotFound | Error::ConnectionFailed | Error::Tls(_) | Error::Rustls(_) => {
            LostAnswer::Unsent(error.to_string())
        }
        Error::ConnectProxyFailed(_) => LostAnswer::Unsent("the proxy cannot connect".to_owned()),
        Error::Timeout(Timeout::Resolve | Timeout::Connect) => {
            // Until there is a connection, nothing was sent, and any request can be made again.
            LostAnswer::Unsent("no connection in time".to_owned())
        }
        Error::Timeout(_) => LostAnswer::Unanswered("no answer in time".to_owned()),
        Error::Io(error) if is_before_sending(&error) => LostAnswer::Unsent(error.to_string()),
        Error::Io(error) => LostAnswer::Unanswered(error.to_string()),
        other => LostAnswer::Unanswered(other.to_string()),
    }
}

fn is_before_sending(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable};
    matches!(error.kind(), AddrNotAvailable | ConnectionRefused | HostUnreachable | NetworkUnreachable)
}

#[cfg(test)]
impl HttpProxy {
    /// Names the proxy through which an address is reached, if it is one.
    pub(crate) fn on_the_way_to(&self, address: &http::Uri) -> Option<String> {
        (!self.0.is_no_proxy(address)).then(|| format!("{}:{}", self.0.host(), self.0.port()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_of_a_proxy_arrives_as_it_was_written() {
        let proxy = proxy("http://me:p%40ss%25@proxy:1", "").unwrap();
        assert_eq!((proxy.username(), proxy.password()), (Some("me"), Some("p@ss%")));
    }

    #[test]
    fn no_message_shows_an_address() {
        let secret = "https://blob/x?sig=geheim";
        for error in [ureq::Error::BadUri(secret.into()), ureq::Error::RequireHttpsOnly(secret.into())] {
            let lost = lost(error);
            assert!(matches!(&lost, LostAnswer::Impossible(reason) if reason == "invalid URL"), "{lost:?}");
        }
    }
}
