//! Which host a connection asks for: read from the first bytes that a program sends, without trusting any of them.

use crate::base::text::{after_last, up_to};

/// What a program asks the proxy for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A tunnel to a host, `CONNECT host:port`.
    Tunnel {
        /// The name.
        host: String,
        /// The port.
        port: u16,
    },
    /// A request of plain HTTP in its absolute form.
    Plain {
        /// The name.
        host: String,
        /// The port.
        port: u16,
        /// The head as the host is sent it: with the path alone, and without what is for the proxy.
        head: Vec<u8>,
    },
}

/// Why nothing is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAsked {
    /// Not what a proxy is asked.
    #[error("this is not a request to a proxy")]
    Form,
    /// An address says nothing about who is reached.
    #[error("an address is not reached, only a name")]
    Address,
}

/// Reads the head of a request, up to and with the empty line.
///
/// # Errors
/// It cannot be read, or asks for an address.
pub fn asked(head: &[u8]) -> Result<Asked, NotAsked> {
    let text = std::str::from_utf8(head).map_err(|_| NotAsked::Form)?;
    let (line, rest) = text.split_once("\r\n").ok_or(NotAsked::Form)?;
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(NotAsked::Form);
    };
    if !version.starts_with("HTTP/1.")
        || !rest.split("\r\n").all(is_header)
        || line.bytes().any(|byte| byte.is_ascii_control())
    {
        return Err(NotAsked::Form);
    }
    if method == "CONNECT" {
        let (host, port) = authority(target, None)?;
        return Ok(Asked::Tunnel { host, port });
    }
    let after = target.strip_prefix("http://").ok_or(NotAsked::Form)?;
    let split = after.find(['/', '?', '#']).unwrap_or(after.len());
    let (of_host, path) = after.split_at(split);
    let (host, port) = authority(of_host, Some(80))?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    // The host that was checked stands in the new head, whatever `Host` the program wrote: servers choose the site by it.
    let mut sent = format!("{method} {path} {version}\r\nHost: {of_host}\r\nConnection: close\r\n");
    for line in rest.split("\r\n").take_while(|line| !line.is_empty()) {
        let name = up_to(line, &[':']).trim().to_ascii_lowercase();
        // What remains open could be used for another host, whose name would not be checked.
        if !["host", "connection", "proxy-connection", "proxy-authorization", "keep-alive", "upgrade"]
            .contains(&name.as_str())
        {
            sent.push_str(line);
            sent.push_str("\r\n");
        }
    }
    sent.push_str("\r\n");
    Ok(Asked::Plain { host, port, head: sent.into_bytes() })
}

/// Tells whether a line is the same header, or the same end, for every reader: some servers take a line end alone for the end of
/// a line, pass over spaces before the colon, or take a line that begins with one for the rest of another.
fn is_header(line: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let name = up_to(line, &[':']);
    line.is_empty()
        || (name.len() < line.len()
            && !name.is_empty()
            && name.bytes().all(is_sign)
            && !line.bytes().any(is_control))
}

/// A tab may stand in the value of a header.
fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}

fn authority(text: &str, usual: Option<u16>) -> Result<(String, u16), NotAsked> {
    if text.starts_with('[') || text.matches(':').count() > 1 {
        return Err(NotAsked::Address);
    }
    let (host, port) = match (text.rsplit_once(':'), usual) {
        (Some((host, port)), _) => (host, port.parse().map_err(|_| NotAsked::Form)?),
        (None, Some(port)) => (text, port),
        (None, None) => return Err(NotAsked::Form),
    };
    // To resolvers, a dot at the end makes no difference; to patterns, it would.
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    // DNS has no name of more than 253 characters.
    if host.is_empty() || host.len() > 253 || !host.bytes().all(is_sign) {
        return Err(NotAsked::Form);
    }
    let last = after_last(&host, &['.']);
    // Resolvers take `2130706433` and `127.0x1` for addresses as well.
    if last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x") {
        return Err(NotAsked::Address);
    }
    Ok((host, port))
}

/// What the first bytes of a tunnel say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// More has to come.
    More,
    /// A TLS client hello that names this server.
    Named(String),
    /// A TLS client hello without a name, or something else.
    Unnamed,
}

/// Reads the name of the server out of a TLS client hello, which may lie in several records.
pub fn greeting(bytes: &[u8]) -> Greeting {
    let mut handshake = Vec::new();
    let mut rest = bytes;
    loop {
        if let Some(found) = hello(&handshake) {
            return found;
        }
        let [kind, major, _, high, low, after @ ..] = rest else {
            // What can still become a record waits for more.
            return if rest.first().is_none_or(|kind| *kind == 22) {
                Greeting::More
            } else {
                Greeting::Unnamed
            };
        };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        // TLS forbids empty records here; without an end of them, no greeting would ever be whole.
        if *kind != 22 || *major != 3 || length == 0 {
            return Greeting::Unnamed;
        }
        let (part, next) = after.split_at(length.min(after.len()));
        handshake.extend_from_slice(part);
        if part.len() < length {
            return hello(&handshake).unwrap_or(Greeting::More);
        }
        rest = next;
    }
}

/// Reads a whole client hello; nothing where more has to come.
fn hello(handshake: &[u8]) -> Option<Greeting> {
    let [kind, high, middle, low, body @ ..] = handshake else { return None };
    if *kind != 1 {
        return Some(Greeting::Unnamed);
    }
    let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
    if length > MOST_HELLO {
        return Some(Greeting::Unnamed);
    }
    let body = body.get(..length)?;
    Some(named(body).map_or(Greeting::Unnamed, Greeting::Named))
}

/// A client hello is shorter, even with keys of the time after quantum computers.
const MOST_HELLO: usize = 64 * 1024;

fn named(body: &[u8]) -> Option<String> {
    // Behind the version and the random bytes stand the session, the ciphers and the compression.
    let mut rest = TlsReader(body.get(2 + 32..)?);
    rest.vector(1)?;
    rest.vector(2)?;
    rest.vector(1)?;
    let mut extensions = TlsReader(rest.vector(2)?);
    while let Some(kind) = extensions.number(2) {
        let content = extensions.vector(2)?;
        // 0 is `server_name`, and the only kind of name in it is 0, that of a host.
        if kind == 0 {
            let mut names = TlsReader(TlsReader(content).vector(2)?);
            let kind = names.number(1)?;
            let name = names.vector(2)?;
            let name = std::str::from_utf8(name).ok().filter(|_| kind == 0)?;
            return Some(name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase());
        }
    }
    None
}

struct TlsReader<'b>(&'b [u8]);

impl<'b> TlsReader<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<usize> {
        Some(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// Takes a length of so many bytes, and what is as long.
    fn vector(&mut self, bytes: usize) -> Option<&'b [u8]> {
        let length = self.number(bytes)?;
        self.take(length)
    }
}

/// Tells whether an address is reached: none of this machine, of its networks, or of a cloud's metadata.
pub fn is_public(address: std::net::IpAddr) -> bool {
    match address {
        std::net::IpAddr::V4(four) => is_public_v4(four),
        std::net::IpAddr::V6(six) => {
            // Addresses that carry one of the older kind lead where that leads.
            let segments = six.segments();
            let carried = match segments {
                [0, 0, 0, 0, 0, 0xffff, high, low]
                | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
                | [0x2002, high, low, ..] => Some((high, low)),
                _ => None,
            };
            if let Some((high, low)) = carried {
                let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
                return is_public_v4(std::net::Ipv4Addr::new(a, b, c, d));
            }
            // Only these are given to the world; 2001:0::/23 is for protocols, and 2001:db8::/32 for documents.
            let is_global = segments[0] & 0xe000 == 0x2000;
            let is_special = segments[0] == 0x2001 && (segments[1] < 0x200 || segments[1] == 0xdb8);
            is_global && !is_special
        }
    }
}

fn is_public_v4(address: std::net::Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    // Networks behind a provider's address translation; Alibaba Cloud serves its metadata there.
    let is_shared = a == 100 && (64..128).contains(&b);
    // This network, multicast and what is reserved, protocols (with an old address of Oracle's metadata), and benchmarks.
    let is_special = a == 0 || a >= 224 || (a, b, c) == (192, 0, 0) || (a == 198 && (b == 18 || b == 19));
    // Azure's metadata and its DNS.
    let is_azure = address.octets() == [168, 63, 129, 16];
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || is_shared
        || is_special
        || is_azure)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A client hello with this name in it.
    pub(in crate::sandbox) fn hello_of(name: &str) -> Vec<u8> {
        let length = |bytes: usize| u16::try_from(bytes).unwrap().to_be_bytes();
        let entry = [&[0][..], &length(name.len()), name.as_bytes()].concat();
        let list = [&length(entry.len())[..], &entry].concat();
        let server_name = [&[0, 0][..], &length(list.len()), &list].concat();
        let grease = [0x0a, 0x0a, 0, 1, 0];
        let extensions = [&grease[..], &server_name].concat();
        let body =
            [&[3, 3][..], &[7; 32], &[0], &[0, 2, 0x13, 1], &[1, 0], &length(extensions.len()), &extensions]
                .concat();
        [&[1, 0][..], &length(body.len()), &body].concat()
    }

    pub(in crate::sandbox) fn records(handshake: &[u8], size: usize) -> Vec<u8> {
        let chunks = handshake.chunks(size);
        chunks
            .flat_map(|chunk| {
                [&[22, 3, 1][..], &u16::try_from(chunk.len()).unwrap().to_be_bytes(), chunk].concat()
            })
            .collect()
    }

    #[test]
    fn the_name_of_a_server_is_read_from_one_record_or_many() {
        let hello = hello_of("API.example.com");
        for size in [1, 7, 4096] {
            let bytes = records(&hello, size);
            assert_eq!(greeting(&bytes), Greeting::Named("api.example.com".to_owned()), "{size}");
            for end in 0..bytes.len() {
                assert_eq!(greeting(&bytes[..end]), Greeting::More, "{size} {end}");
            }
        }
        for other in
            [&b"SSH-2.0-x\r\n"[..], b"GET / HTTP/1.1\r\n", &[22, 3, 1, 0, 0], &[22, 3, 1, 0, 4, 2, 0, 0, 0]]
        {
            assert_eq!(greeting(other), Greeting::Unnamed);
        }
    }

    #[test]
    fn a_proxy_is_asked_for_names_alone() {
        let tunnel = |text: &str| asked(format!("CONNECT {text} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        assert_eq!(tunnel("a.b:443"), Ok(Asked::Tunnel { host: "a.b".to_owned(), port: 443 }));
        for address in ["1.2.3.4:443", "[::1]:443", "2130706433:80", "0x7f000001:80", "::1:80"] {
            assert_eq!(tunnel(address), Err(NotAsked::Address), "{address}");
        }
        for none in ["a.b", "a b:1", ":443", "a.b:x", "a@b:443"] {
            assert_eq!(tunnel(none), Err(NotAsked::Form), "{none}");
        }
        let plain = b"GET http://A.b/x?y HTTP/1.1\r\nHost: evil\r\nProxy-Connection: keep-alive\r\nAccept: */*\r\n\r\n";
        let head = b"GET /x?y HTTP/1.1\r\nHost: A.b\r\nConnection: close\r\nAccept: */*\r\n\r\n".to_vec();
        assert_eq!(asked(plain), Ok(Asked::Plain { host: "a.b".to_owned(), port: 80, head }));
        assert_eq!(asked(b"GET /x HTTP/1.1\r\n\r\n"), Err(NotAsked::Form));
        assert_eq!(asked(b"GET http://u@a.b/ HTTP/1.1\r\n\r\n"), Err(NotAsked::Form));
    }

    #[test]
    fn a_head_that_servers_read_in_two_ways_is_refused() {
        for header in [
            "X: a\nHost: evil",
            "X: a\rHost: evil",
            "Host : evil",
            "\x0bHost: evil",
            " Host: evil",
            "\tfolded",
            "no colon",
            ": nameless",
            "X: \x7f",
        ] {
            let head = format!("GET http://a.b/ HTTP/1.1\r\nAccept: */*\r\n{header}\r\n\r\n");
            assert_eq!(asked(head.as_bytes()), Err(NotAsked::Form), "{header:?}");
        }
        for first in
            ["GET http://a.b/\n HTTP/1.1", "G\rET http://a.b/ HTTP/1.1", "GET http://a.b/\x00 HTTP/1.1"]
        {
            assert!(asked(format!("{first}\r\n\r\n").as_bytes()).is_err(), "{first:?}");
        }
    }

    #[test]
    fn only_addresses_of_the_world_are_reached() {
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.0.192",
            "198.18.0.1",
            "168.63.129.16",
            "::",
            "::1",
            "fe80::1",
            "fd00::1",
            "fc00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "fec0::1",
            "::7f00:1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in ["1.1.1.1", "140.82.112.3", "2606:4700::1", "2a00:1450::1", "64:ff9b::101:101"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            drop((asked(&bytes), greeting(&bytes)));
            let mut record = vec![22, 3, 1, 1, 0, 1, 0, 0, 200];
            record.extend(&bytes);
            drop(greeting(&record));
        }
    }
}
