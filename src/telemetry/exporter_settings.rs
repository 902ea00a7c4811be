//! Where a run is exported to when it ends, by the variables that OpenTelemetry gives every program.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};

use super::trace_span::Attribute;
use crate::base::lookup::Lookup;
use crate::base::text::percent_decoded;

/// What is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TelemetrySignal {
    /// Spans.
    Traces,
    /// Metrics.
    Metrics,
}

impl TelemetrySignal {
    fn word(self) -> &'static str {
        match self {
            Self::Traces => "TRACES",
            Self::Metrics => "METRICS",
        }
    }

    /// Returns the path below the address of a collector.
    fn path(self) -> &'static str {
        match self {
            Self::Traces => "v1/traces",
            Self::Metrics => "v1/metrics",
        }
    }
}

/// How a request is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtlpEncoding {
    /// As protobuf.
    Protobuf,
    /// As JSON.
    Json,
}

impl OtlpEncoding {
    /// Returns the media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }
}

/// Where and how one signal is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpTarget {
    /// The whole address.
    pub address: Uri,
    /// How it is written.
    pub encoding: OtlpEncoding,
    /// What is sent along.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// How long a request may take, where the environment says it.
    pub timeout: Option<Duration>,
}

/// What is wrong with the variables. None of their values is shown but words: an address may have a password in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsFault {
    /// The address is invalid.
    #[error("`{0}` is not an address that begins with http:// or https://")]
    Address(String),
    /// A protocol that is not spoken.
    #[error("`{variable}` names the protocol `{protocol}`, and only http/protobuf and http/json are spoken")]
    Protocol {
        /// The variable.
        variable: String,
        /// The protocol.
        protocol: String,
    },
    /// Invalid headers.
    #[error("`{0}` is not a list of headers such as `name=value,other=value`")]
    Headers(String),
    /// An invalid time.
    #[error("`{0}` is not a number of milliseconds")]
    Timeout(String),
}

/// Reads where a signal goes; nothing where it was not asked for.
///
/// # Errors
/// The variables say something that cannot be.
pub fn target(signal: TelemetrySignal, env: Lookup<'_>) -> Result<Option<OtlpTarget>, SettingsFault> {
    let value = |name: &str| env(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let is_disabled = value("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let exporters = value(&format!("OTEL_{}_EXPORTER", signal.word()));
    let is_wanted =
        // A list without `otlp`, such as `none`, asks for nothing that is done here.
        exporters.is_none_or(|listed| listed.split(',').any(|exporter| exporter.trim() == "otlp"));
    if is_disabled || !is_wanted {
        return Ok(None);
    }
    // A variable of the signal goes before the one of all signals.
    let either = |what: &str| {
        let names =
            [format!("OTEL_EXPORTER_OTLP_{}_{what}", signal.word()), format!("OTEL_EXPORTER_OTLP_{what}")];
        names.into_iter().find_map(|name| Some((value(&name)?, name)))
    };
    let Some((written, variable)) = either("ENDPOINT") else { return Ok(None) };
    // By the specification, the address of one signal is taken as it is, and that of all gets a path for each.
    let is_whole = variable.contains(signal.word());
    let whole =
        if is_whole { written } else { format!("{}/{}", written.trim_end_matches('/'), signal.path()) };
    let address = address(&whole).ok_or(SettingsFault::Address(variable))?;
    let encoding = match either("PROTOCOL") {
        // The default of the specification.
        None => OtlpEncoding::Protobuf,
        Some((protocol, variable)) => match protocol.as_str() {
            "http/protobuf" => OtlpEncoding::Protobuf,
            "http/json" => OtlpEncoding::Json,
            _ => return Err(SettingsFault::Protocol { variable, protocol: shown(&protocol) }),
        },
    };
    let headers = match either("HEADERS") {
        None => Vec::new(),
        Some((listed, variable)) => headers(&listed).ok_or(SettingsFault::Headers(variable))?,
    };
    let timeout = match either("TIMEOUT") {
        None => None,
        Some((millis, variable)) => {
            let millis = millis.parse().map_err(|_number| SettingsFault::Timeout(variable))?;
            Some(Duration::from_millis(millis))
        }
    };
    Ok(Some(OtlpTarget { address, encoding, headers, timeout }))
}

/// Reads an address of a collector.
pub fn address(text: &str) -> Option<Uri> {
    let address: Uri = text.parse().ok()?;
    let is_http = matches!(address.scheme_str(), Some("http" | "https"));
    (is_http && address.host().is_some_and(|host| !host.is_empty())).then_some(address)
}

/// Reads `name=value,…`, percent-encoded as baggage is.
fn headers(listed: &str) -> Option<Vec<(HeaderName, HeaderValue)>> {
    let header = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let value = percent_decoded(value.trim());
        let mut value: HeaderValue = value.parse().ok()?;
        // What goes in headers is mostly a key, which no trace of a connection has to show.
        value.set_sensitive(true);
        Some((name.trim().parse().ok()?, value))
    };
    listed.split(',').filter(|pair| !pair.trim().is_empty()).map(header).collect()
}

/// Returns what is said of the program, and what the environment adds.
pub fn resource(env: Lookup<'_>) -> Vec<Attribute> {
    let mut found = vec![
        Attribute::new("service.name", "ll-loop"),
        Attribute::new("service.version", env!("CARGO_PKG_VERSION")),
    ];
    let listed = env("OTEL_RESOURCE_ATTRIBUTES");
    let pairs = listed.iter().flat_map(|listed| listed.split(',')).filter_map(|pair| pair.split_once('='));
    let of_service = env("OTEL_SERVICE_NAME").filter(|name| !name.is_empty());
    let given = pairs.map(|(name, value)| (name.trim().to_owned(), percent_decoded(value.trim())));
    for (name, value) in given.chain(of_service.map(|name| ("service.name".to_owned(), name))) {
        if name.is_empty() {
            continue;
        }
        // The last of a name counts: by the specification, `OTEL_SERVICE_NAME` goes before what the list says.
        found.retain(|known| known.name != name);
        found.push(Attribute { name, value: value.into() });
    }
    found
}

fn shown(text: &str) -> String {
    crate::base::text::one_line(text, 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = Result<Option<OtlpTarget>, SettingsFault>;

    fn read(variables: &[(&str, &str)]) -> Read {
        let env = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        target(TelemetrySignal::Traces, &env)
    }

    fn address_of(variables: &[(&str, &str)]) -> Option<String> {
        read(variables).unwrap().map(|target| target.address.to_string())
    }

    #[test]
    fn one_address_is_for_all_signals_and_another_is_whole() {
        assert_eq!(address_of(&[]), None);
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/base/");
        assert_eq!(address_of(&[all]).as_deref(), Some("http://c:4318/base/v1/traces"));
        let whole = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c/in");
        assert_eq!(address_of(&[all, whole]).as_deref(), Some("https://c/in"));
        assert_eq!(address_of(&[all, ("OTEL_SDK_DISABLED", "True")]), None);
        assert_eq!(address_of(&[all, ("OTEL_TRACES_EXPORTER", "none")]), None);
        assert!(address_of(&[all, ("OTEL_TRACES_EXPORTER", "console, otlp")]).is_some());
        assert!(address_of(&[all, ("OTEL_METRICS_EXPORTER", "none")]).is_some());
    }

    #[test]
    fn what_cannot_be_is_said_without_what_may_be_secret() {
        let endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT";
        for address in ["collector:4318", "ftp://c", "http://", "http:///x", "no address at all"] {
            let fault = read(&[(endpoint, address)]).unwrap_err();
            assert_eq!(fault, SettingsFault::Address(endpoint.to_owned()), "{address}");
        }
        let ok = (endpoint, "http://c");
        let protocol = read(&[ok, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap_err().to_string();
        assert!(protocol.contains("`grpc`"), "{protocol}");
        let headers = read(&[ok, ("OTEL_EXPORTER_OTLP_HEADERS", "no header")]).unwrap_err().to_string();
        assert!(!headers.contains("no header"), "{headers}");
        assert!(read(&[ok, ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")]).is_err());
    }

    #[test]
    fn headers_and_the_time_are_read() {
        let target = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc, x-team = a"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10000"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ]);
        let target = target.unwrap().unwrap();
        let headers: Vec<_> =
            target.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(headers, [("authorization", "Bearer abc"), ("x-team", "a")]);
        assert_eq!((target.timeout, target.encoding), (Some(Duration::from_secs(10)), OtlpEncoding::Json));
    }

    #[test]
    fn the_environment_says_who_the_service_is() {
        let env = |name: &str| match name {
            "OTEL_RESOURCE_ATTRIBUTES" => Some("service.name=other,team=a%20b".to_owned()),
            "OTEL_SERVICE_NAME" => Some("mine".to_owned()),
            _ => None,
        };
        let found = resource(&env);
        let names: Vec<_> = found.iter().map(|known| (known.name.as_str(), known.value.clone())).collect();
        assert!(names.contains(&("service.name", "mine".into())));
        assert!(names.contains(&("team", "a b".into())));
        assert_eq!(names.len(), 3);
    }
}
