//! The proxy of a confined action: reaches hosts by name, and only those that the loop names.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::forward::carry;
use super::order::Reached;
use super::reached::{Asked, Greeting, NotAsked, asked, greeting, is_public};
use crate::base::sandbox::HostPattern;

/// A longer head is refused.
const MOST_HEAD: usize = 64 * 1024;

/// How long a program may take to say whom it wants, and a host to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Hosts that one action is told of; the others are counted together.
// The names go into the journal, and an action can ask for names without end.
const MOST_HOSTS: usize = 200;

/// What may be reached, and what was.
#[derive(Debug)]
pub(super) struct Proxy {
    hosts: Vec<HostPattern>,
    reached: Mutex<Reached>,
}

/// Why a connection is not made.
enum ProxyRefusal {
    /// The loop does not name the host.
    Host(String),
    /// It has no address that may be reached.
    Address(String),
    /// It does not answer.
    Away(String),
    /// It is no request.
    Form(NotAsked),
}

impl Proxy {
    pub(super) fn new(hosts: Vec<HostPattern>) -> Self {
        Self { hosts, reached: Mutex::default() }
    }

    /// Returns what was reached so far.
    pub(super) fn reached(&self) -> Reached {
        // A count is whole whatever a thread was doing when it panicked, and what was reached is always reported.
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count(&self, host: &str, is_allowed: bool) {
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = reached.len() < MOST_HOSTS || reached.contains_key(host);
        let counts = reached.entry(if is_known { host } else { "others" }.to_owned()).or_default();
        if is_allowed {
            counts.0 += 1;
        } else {
            counts.1 += 1;
        }
    }

    /// Serves one connection.
    pub(super) fn serve(&self, mut client: UnixStream) -> io::Result<()> {
        client.set_read_timeout(Some(PATIENCE))?;
        let (head, early) = read_head(&mut client)?;
        match self.attend(&head, early, &mut client) {
            Ok(ended) => ended,
            Err(refusal) => {
                let (status, why) = match refusal {
                    ProxyRefusal::Host(host) => {
                        self.count(&host, false);
                        ("403 Forbidden", format!("`{host}` is not among the hosts of `net` in the loop"))
                    }
                    ProxyRefusal::Address(host) => {
                        self.count(&host, false);
                        ("403 Forbidden", format!("`{host}` has no public address"))
                    }
                    // Not counted as denied: the loop names the host, so a line of `net` would not help.
                    ProxyRefusal::Away(host) => ("502 Bad Gateway", format!("`{host}` does not answer")),
                    ProxyRefusal::Form(why) => ("403 Forbidden", why.to_string()),
                };
                let body = format!("ll-loop: {why}\n");
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                client.write_all(answer.as_bytes())
            }
        }
    }

    fn attend(
        &self,
        head: &[u8],
        early: Vec<u8>,
        client: &mut UnixStream,
    ) -> Result<io::Result<()>, ProxyRefusal> {
        match asked(head).map_err(ProxyRefusal::Form)? {
            Asked::Plain { host, port, head } => {
                let mut server = self.connect(&host, port)?;
                // An answer may take as long as it likes: a model thinks for minutes before its first word.
                let ended = client.set_read_timeout(None);
                Ok(ended
                    .and_then(|()| server.write_all(&head))
                    .and_then(|()| server.write_all(&early))
                    .and_then(|()| carry(client.try_clone()?, server)))
            }
            Asked::Tunnel { host, port } => {
                let server = self.connect(&host, port)?;
                Ok(self.tunnel(&host, server, early, client))
            }
        }
    }

    /// Opens a tunnel once the program has named the same host in its TLS greeting: one that may be reached often stands
    /// beside others on the same machines, which it would lead to.
    fn tunnel(
        &self,
        host: &str,
        mut server: TcpStream,
        early: Vec<u8>,
        client: &mut UnixStream,
    ) -> io::Result<()> {
        // A program sends its greeting only after this, so whether the name is the same is seen too late to answer `403`.
        client.write_all(b"HTTP/1.1 200 Connection Established\r\n\r\n")?;
        let mut said = early;
        let mut buffer = [0; 4096];
        loop {
            match greeting(&said) {
                Greeting::Named(name) if name == host => break,
                Greeting::Named(name) => {
                    self.count(&name, false);
                    return Ok(());
                }
                Greeting::Unnamed => {
                    self.count(host, false);
                    return Ok(());
                }
                Greeting::More => {}
            }
            let count = client.read(&mut buffer)?;
            // A hello of the greatest length fits, with the heads of the records that it lies in.
            if count == 0 || said.len() > MOST_HEAD * 2 {
                return Ok(());
            }
            said.extend_from_slice(&buffer[..count]);
        }
        client.set_read_timeout(None)?;
        server.write_all(&said)?;
        carry(client.try_clone()?, server)
    }

    /// Resolves a name once, and connects to what was found.
    fn connect(&self, host: &str, port: u16) -> Result<TcpStream, ProxyRefusal> {
        if !self.hosts.iter().any(|pattern| pattern.allows(host, port)) {
            return Err(ProxyRefusal::Host(host.to_owned()));
        }
        let away = || ProxyRefusal::Away(host.to_owned());
        // Looked up once: a second answer could lead elsewhere than the one that was looked at.
        let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(|_| away())?.collect();
        let public: Vec<&SocketAddr> = addresses
            .iter()
            .filter(|address| is_public(address.ip()) || is_named_loopback(host, address.ip()))
            .collect();
        if public.is_empty() {
            return Err(ProxyRefusal::Address(host.to_owned()));
        }
        let mut servers =
            public.into_iter().filter_map(|address| TcpStream::connect_timeout(address, PATIENCE).ok());
        let server = servers.next().ok_or_else(away)?;
        self.count(host, true);
        Ok(server)
    }
}

/// Who writes `localhost` into `net` means this machine.
fn is_named_loopback(host: &str, address: IpAddr) -> bool {
    host == "localhost" && address.is_loopback()
}

/// Reads up to the empty line; returns the head, and what came behind it.
fn read_head(client: &mut UnixStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut said = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = client.read(&mut buffer)?;
        said.extend_from_slice(&buffer[..count]);
        if let Some(end) = said.windows(4).position(|four| four == b"\r\n\r\n") {
            let early = said.split_off(end + 4);
            return Ok((said, early));
        }
        if count == 0 || said.len() > MOST_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;

    use super::super::reached::tests::{hello_of, records};
    use super::*;

    /// A host that hands on what reaches it, and says nothing.
    fn host() -> (u16, Receiver<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, reached) = channel();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut bytes = Vec::new();
                let _cut = stream.read_to_end(&mut bytes);
                drop(sender.send(bytes));
            }
        });
        (port, reached)
    }

    /// Sends bytes to a proxy that reaches this port of `localhost`, and returns what it says.
    fn said(allowed: u16, bytes: &[u8]) -> (String, Reached) {
        let proxy = Proxy::new(vec![HostPattern::parse(&format!("localhost:{allowed}")).unwrap()]);
        let (mut client, server) = UnixStream::pair().unwrap();
        thread::scope(|scope| {
            let serving = scope.spawn(|| drop(proxy.serve(server)));
            // What is refused early is not read to its end.
            let _refused = client.write_all(bytes);
            client.shutdown(std::net::Shutdown::Write).unwrap();
            let mut said = Vec::new();
            let _cut = client.read_to_end(&mut said);
            drop(serving.join());
            (String::from_utf8_lossy(&said).into_owned(), proxy.reached())
        })
    }

    /// A TLS greeting that names a server.
    fn hello(name: &str) -> Vec<u8> {
        records(&hello_of(name), 4096)
    }

    #[test]
    fn a_tunnel_leads_to_the_host_that_was_asked_for_and_to_no_other() {
        let (port, reached) = host();
        let tunnel = format!("CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        for (greeting, is_reached) in [
            (hello("localhost"), true),
            (hello("LOCALHOST."), true),
            (hello("evil.example"), false),
            (hello("localhost.evil.example"), false),
            (hello(""), false),
            (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), false),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), false),
            (b"SSH-2.0-x\r\n".to_vec(), false),
            (vec![22, 3, 1, 0xff, 0xff, 1], false),
        ] {
            let (answer, _) = said(port, &[tunnel.as_bytes(), &greeting].concat());
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            let came = reached.recv().unwrap();
            assert_eq!(came, if is_reached { greeting.clone() } else { Vec::new() }, "{greeting:?}");
        }
    }

    #[test]
    fn other_ports_addresses_and_hosts_are_refused_and_counted() {
        let (port, _) = host();
        let (other, reached) = host();
        for (target, host) in [
            (format!("localhost:{other}"), Some("localhost")),
            ("localhost:443".to_owned(), Some("localhost")),
            ("evil.example:443".to_owned(), Some("evil.example")),
            ("localhost.evil.example:443".to_owned(), Some("localhost.evil.example")),
            (format!("127.0.0.1:{port}"), None),
            (format!("[::1]:{port}"), None),
            ("169.254.169.254:80".to_owned(), None),
            ("0x7f.1:80".to_owned(), None),
            (format!("localhost:{port}@evil.example:443"), None),
        ] {
            for request in [
                format!("CONNECT {target} HTTP/1.1\r\n\r\n"),
                format!("GET http://{target}/ HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"),
            ] {
                let (answer, counts) = said(port, request.as_bytes());
                assert!(answer.starts_with("HTTP/1.1 403"), "{request}: {answer}");
                let denied = counts.keys().map(String::as_str).next();
                assert_eq!(denied, host, "{request}: {counts:?}");
            }
        }
        assert!(reached.try_recv().is_err());
    }

    #[test]
    fn a_request_is_for_the_host_in_its_first_line_whatever_its_headers_say() {
        let (port, reached) = host();
        let head = format!(
            "GET http://localhost:{port}/x HTTP/1.1\r\nHost: evil.example\r\nHOST: other\r\nConnection: keep-alive\r\nUpgrade: h2c\r\n\r\n"
        );
        let (_, counts) = said(port, head.as_bytes());
        let came = String::from_utf8(reached.recv().unwrap()).unwrap();
        assert_eq!(came, format!("GET /x HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n"));
        assert_eq!(counts.get("localhost"), Some(&(1, 0)));
        let lie = format!("GET http://localhost:{port}/ HTTP/1.1\r\nX: a\nHost: evil.example\r\n\r\n");
        assert!(said(port, lie.as_bytes()).0.starts_with("HTTP/1.1 403"));
    }

    #[test]
    fn a_head_without_an_end_is_given_up() {
        let long = format!("GET http://localhost/ HTTP/1.1\r\nX: {}", "x".repeat(MOST_HEAD + 10));
        for bytes in [long.as_bytes(), b"GET http://localhost/ HTT", b""] {
            let (answer, counts) = said(1, bytes);
            assert!(answer.is_empty() && counts.is_empty(), "{answer}");
        }
    }
}
