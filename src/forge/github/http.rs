//! What every request to GitHub needs: a client that follows nothing and waits for nothing forever, a judgement of what
//! went wrong on the way, and tries with pauses between them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response};
use uuid::Uuid;

use super::client::{Body, Client, HttpProxy, LostAnswer};
use crate::base::explanation::Explanation;
use crate::base::lookup::Lookup;
use crate::base::time::parse_duration;

/// How long nothing may come or go before a request is given up.
const IDLE: Duration = Duration::from_mins(1);

/// The variables that name a proxy, in the order in which they count.
const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"];

/// How a client reaches its server, and how it waits between tries.
#[derive(Clone, Debug)]
pub struct Transport {
    proxy: Option<HttpProxy>,
    idle: Duration,
    pause: Pause,
    /// The first pause, where it is not that of the client.
    first: Option<Duration>,
}

impl Default for Transport {
    fn default() -> Self {
        Self { proxy: None, idle: IDLE, pause: Pause::default(), first: None }
    }
}

impl Transport {
    /// Makes a transport with the proxy that the environment names, and the first wait before something is tried again.
    /// What is wrong with the proxy is an error.
    pub fn from_env(env: Lookup<'_>) -> Result<Self, Explanation> {
        let set =
            |name: &str| env(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let first = set("LL_RETRY_WAIT").and_then(|wait| parse_duration(&wait).ok());
        let plain = Self { first, ..Self::default() };
        let Some((name, address)) = PROXIES.iter().find_map(|name| Some((*name, set(name)?))) else {
            // Without a proxy, the list of exceptions means nothing.
            return Ok(plain);
        };
        let except = set("NO_PROXY").or_else(|| set("no_proxy")).unwrap_or_default();
        // The address may hold a password, so it is not shown.
        let proxy = HttpProxy::parse(&address, &except)
            .ok_or_else(|| Explanation::new(format!("`{name}` holds no address of a proxy")))?;
        Ok(Self { proxy: Some(proxy), ..plain })
    }

    /// Waits between tries in another way.
    #[cfg(test)]
    #[must_use]
    pub fn pause(mut self, pause: Pause) -> Self {
        self.pause = pause;
        self
    }

    /// Gives a request up when nothing came or went for so long.
    #[cfg(test)]
    #[must_use]
    pub fn idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// Makes the client. A request ends with the answer to it, whatever that is; `whole` is how long it may take
    /// altogether.
    pub(crate) fn client(&self, whole: Option<Duration>) -> Client {
        Client::new(self.proxy.as_ref(), self.idle, whole)
    }

    /// Makes a client that waits so long for what comes, and as often as something does.
    pub(crate) fn patient_client(&self, idle: Duration) -> Client {
        Client::new(self.proxy.as_ref(), idle, None)
    }
}

/// How a client waits between tries.
#[derive(Clone)]
pub struct Pause(Arc<dyn Fn(Duration) + Send + Sync>);

impl Default for Pause {
    /// Sleeps.
    fn default() -> Self {
        Self::with(std::thread::sleep)
    }
}

impl Pause {
    /// Calls this in place of sleeping.
    pub fn with(wait: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        Self(Arc::new(wait))
    }

    fn wait(&self, time: Duration) {
        (self.0)(time);
    }
}

impl fmt::Debug for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pause")
    }
}

/// A credential, which no message shows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    pub(crate) fn new(token: String) -> Self {
        Self(token)
    }

    /// Returns the value of the header `Authorization`.
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Returns the same for a server that asks for a name and a password, as those of git do.
    pub(crate) fn basic(&self, name: &str) -> String {
        format!("Basic {}", STANDARD.encode(format!("{name}:{}", self.0)))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

/// Sends one request, and returns the answer with its body still to be read.
pub(crate) fn send(
    client: &Client,
    method: &str,
    address: &str,
    headers: &[(&str, &str)],
    body: Option<&[u8]>,
) -> Result<Response<Body>, LostAnswer> {
    let mut request = Request::builder().method(method).uri(address);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(body);
    client.send(request.map_err(|_| LostAnswer::Impossible("invalid URL or header value".to_owned()))?)
}

/// Reads the body of an answer, up to so many bytes.
pub(crate) fn read(answer: &mut Response<Body>, limit: u64) -> Result<Vec<u8>, LostAnswer> {
    answer.body_mut().read_up_to(limit)
}

/// How often something is tried, and how long the pauses are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryPolicy {
    pub(crate) tries: u32,
    /// The first pause.
    pub(crate) first: Duration,
    /// What every further pause is longer by.
    pub(crate) growth: f64,
}

/// What a try came to that did not succeed.
#[derive(Debug)]
pub(crate) struct Failed<E> {
    pub(crate) error: E,
    pub(crate) again: Again,
}

impl<E> Failed<E> {
    pub(crate) fn for_good(error: E) -> Self {
        Self { error, again: Again::Never }
    }
}

/// Whether and when something may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    Never,
    /// After a pause that grows, with jitter, so that jobs which failed together do not come back together.
    Soon,
    /// After the time the server names.
    After(Duration),
}

/// Tries until something succeeds, fails for good, or was tried often enough. The try gets its number, from one.
pub(crate) fn tries<T, E>(
    patience: RetryPolicy,
    transport: &Transport,
    mut attempt: impl FnMut(u32) -> Result<T, Failed<E>>,
) -> Result<T, E> {
    let mut next = transport.first.unwrap_or(patience.first);
    for number in 1..patience.tries {
        match attempt(number) {
            Ok(value) => return Ok(value),
            Err(Failed { again: Again::Soon, .. }) => {
                transport.pause.wait(next.mul_f64(jitter()));
                next = next.mul_f64(patience.growth);
            }
            // A server that names a time wants exactly that, so it is not stretched.
            Err(Failed { again: Again::After(time), .. }) => transport.pause.wait(time),
            Err(Failed { error, again: Again::Never }) => return Err(error),
        }
    }
    attempt(patience.tries).map_err(|failed| failed.error)
}

/// Returns a random factor from 1 to 1.5.
fn jitter() -> f64 {
    // 510 is twice 255: a byte becomes a fraction of up to a half.
    1.0 + f64::from(Uuid::new_v4().as_bytes()[0]) / 510.0
}

/// Tells whether a status says that the server had trouble, and the request none.
pub(crate) fn is_trouble(status: u16) -> bool {
    matches!(status, 500..=599)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], address: &str, expect: Result<&str, &str>) {
        let env =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let address = address.parse().unwrap();
        let found = Transport::from_env(&env).map(|transport| {
            let proxy = transport.proxy.and_then(|proxy| proxy.on_the_way_to(&address));
            proxy.unwrap_or_else(|| "none".to_owned())
        });
        assert_eq!(found.as_deref().map_err(Explanation::as_str), expect);
    }

    #[test]
    fn the_proxy_is_the_one_of_the_environment() {
        let github = "https://api.github.com/";
        check(&[], github, Ok("none"));
        check(&[("HTTPS_PROXY", " ")], github, Ok("none"));
        check(&[("https_proxy", "http://user:pass@proxy:3128")], github, Ok("proxy:3128"));
        check(&[("ALL_PROXY", "http://all:1"), ("HTTPS_PROXY", "http://https:2")], github, Ok("https:2"));
        check(&[("HTTPS_PROXY", "proxy:3128"), ("NO_PROXY", "a, .github.com")], github, Ok("none"));
        check(&[("HTTPS_PROXY", "??")], github, Err("`HTTPS_PROXY` holds no address of a proxy"));
    }

    #[test]
    fn a_name_without_a_proxy_stands_for_the_names_below_it() {
        let check = |except: &str, expect: &str| {
            check(
                &[("HTTPS_PROXY", "proxy:3128"), ("no_proxy", except)],
                "https://api.github.com/",
                Ok(expect),
            );
        };
        check("api.github.com", "none");
        check("github.com", "none");
        check(".api.github.com", "none");
        check("*.github.com,", "none");
        check("*", "none");
        check("hub.com, github.com.example, x.api.github.com", "proxy:3128");
        check(".", "proxy:3128");
    }

    #[test]
    fn no_message_shows_the_address_of_a_request() {
        let client = Transport::default().client(None);
        let error = send(&client, "GET", "https://blob/a b?sig=geheim", &[], None).unwrap_err();
        assert!(!format!("{error:?}").contains("geheim"), "{error:?}");
    }

    #[test]
    fn pauses_grow_and_differ() {
        let waited = Arc::new(std::sync::Mutex::new(Vec::new()));
        let log = waited.clone();
        let transport = Transport::default().pause(Pause::with(move |time| {
            log.lock().unwrap().push(time.as_secs_f64());
        }));
        let patience = RetryPolicy { tries: 4, first: Duration::from_secs(2), growth: 2.0 };
        let mut numbers = Vec::new();
        let result: Result<(), &str> = tries(patience, &transport, |number| {
            numbers.push(number);
            Err(Failed { error: "down", again: Again::Soon })
        });
        assert_eq!(result, Err("down"));
        assert_eq!(numbers, [1, 2, 3, 4]);
        let waited = waited.lock().unwrap();
        for (time, least) in waited.iter().zip([2.0, 4.0, 8.0]) {
            assert!((least..=least * 1.5).contains(time), "{waited:?}");
        }
        assert_eq!(waited.len(), 3);
    }

    #[test]
    fn the_first_pause_can_be_given() {
        let given =
            |wait: &str| Transport::from_env(&|name| (name == "LL_RETRY_WAIT").then(|| wait.into())).unwrap();
        assert_eq!(given("20ms").first, Some(Duration::from_millis(20)));
        assert_eq!(given("soon").first, None);
        let patience = RetryPolicy { tries: 2, first: Duration::from_hours(1), growth: 2.0 };
        let mut count = 0;
        let result: Result<(), &str> = tries(patience, &given("1ms"), |_| {
            count += 1;
            Err(Failed { error: "down", again: Again::Soon })
        });
        assert_eq!((result, count), (Err("down"), 2));
    }

    #[test]
    fn what_is_wrong_for_good_is_not_tried_again() {
        let patience = RetryPolicy { tries: 4, first: Duration::from_secs(2), growth: 2.0 };
        let never = Transport::default().pause(Pause::with(|_| panic!("a pause")));
        let mut count = 0;
        let result: Result<(), &str> = tries(patience, &never, |_| {
            count += 1;
            Err(Failed::for_good("no"))
        });
        assert_eq!((result, count), (Err("no"), 1));
    }
}
