//! Blobs behind signed addresses: stored in blocks, fetched as a stream. A client of its own, because a storage
//! refuses a request with two credentials, and must not see our token.

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::time::Duration;

use http::Response;
use sha2::{Digest as _, Sha256};

use super::artifact_fault::ArtifactError;
use super::client::{Body, Client, LostAnswer};
use super::http::{Again, Failed, RetryPolicy, Transport, is_trouble, read, send, tries};
use crate::base::text::{hex, one_line, percent_decoded};

// As the official client: five tries, from three seconds on, each pause half as long again.
const STORE: RetryPolicy = RetryPolicy { tries: 5, first: Duration::from_secs(3), growth: 1.5 };
// As the official client: five tries, five seconds apart.
const FETCH: RetryPolicy = RetryPolicy { tries: 5, first: Duration::from_secs(5), growth: 1.0 };

/// The version of the storage's protocol.
const VERSION: &str = "2021-12-02";

/// The most bytes of an answer that is an error.
const MAX_ERROR: u64 = 64 << 10;

/// An address that is a credential: whoever has it may read or write the blob.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Signed(String);

impl Signed {
    pub(super) fn new(address: String) -> Self {
        Self(address)
    }

    /// Returns the signature, as it stands in the address and decoded: what a log must not show.
    pub(super) fn secrets(&self) -> Vec<String> {
        let query = self.0.split_once('?').map_or("", |(_, query)| query);
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let mut secrets: Vec<String> = pairs
            .filter(|(name, value)| name.eq_ignore_ascii_case("sig") && !value.is_empty())
            .flat_map(|(_, value)| [value.to_owned(), percent_decoded(value)])
            .collect();
        secrets.dedup();
        secrets
    }

    /// Adds parameters. What is there stays as it is, byte for byte: it was signed.
    fn with(&self, parameters: &str) -> String {
        let mark = if self.0.contains('?') { '&' } else { '?' };
        format!("{}{mark}{parameters}", self.0)
    }
}

impl fmt::Debug for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signed(***)")
    }
}

/// What was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FetchedBlob {
    pub(super) size: u64,
    /// `sha256:` and the digest of what came.
    pub(super) digest: String,
}

/// A client of blobs.
#[derive(Clone, Debug)]
pub(super) struct Blobs {
    client: Client,
    transport: Transport,
}

impl Blobs {
    pub(super) fn new(transport: Transport) -> Self {
        // Without a limit for the whole: an artifact may take as long as it takes, as long as
        // something comes.
        Self { client: transport.client(None), transport }
    }

    /// Stores one block. All ids of a blob have the same length.
    pub(super) fn put_block(&self, to: &Signed, id: &str, bytes: &[u8]) -> Result<(), ArtifactError> {
        let address = to.with(&format!("comp=block&blockid={id}"));
        // No `Authorization` either: Azure refuses a request that has one besides the signature in
        // its address.
        self.put(&address, &[("Content-Type", "application/octet-stream")], bytes)
    }

    /// Makes the blob of its blocks.
    pub(super) fn put_list(&self, to: &Signed, ids: &[String]) -> Result<(), ArtifactError> {
        let blocks: Vec<String> = ids.iter().map(|id| format!("<Latest>{id}</Latest>")).collect();
        let list =
            format!(r#"<?xml version="1.0" encoding="UTF-8"?><BlockList>{}</BlockList>"#, blocks.concat());
        let headers = [("Content-Type", "application/xml"), ("x-ms-blob-content-type", "application/zip")];
        self.put(&to.with("comp=blocklist"), &headers, list.as_bytes())
    }

    fn put(&self, address: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<(), ArtifactError> {
        const WHAT: &str = "storing the artifact";
        let mut headers = headers.to_vec();
        headers.push(("x-ms-version", VERSION));
        tries(STORE, &self.transport, |_| {
            let mut answer = send(&self.client, "PUT", address, &headers, Some(body))
                .map_err(|lost| failed(WHAT, lost))?;
            match answer.status().as_u16() {
                200..=299 => Ok(()),
                status => Err(refused(WHAT, status, &mut answer)),
            }
        })
    }

    /// Fetches a blob into a file, which then holds nothing else, and compares it with a digest where there is one.
    /// Signed addresses are good for a minute, so each try asks for a new one.
    pub(super) fn fetch(
        &self,
        into: &mut File,
        limit: u64,
        digest: Option<&str>,
        mut address: impl FnMut() -> Result<Signed, ArtifactError>,
    ) -> Result<FetchedBlob, ArtifactError> {
        const WHAT: &str = "fetching the artifact";
        let fetched = tries(FETCH, &self.transport, |_| {
            let from = address().map_err(Failed::for_good)?;
            let mut answer =
                send(&self.client, "GET", &from.0, &[], None).map_err(|lost| failed(WHAT, lost))?;
            match answer.status().as_u16() {
                200 => stream(answer, into, limit).map_err(|broken| match broken {
                    Broken::Lost(lost) => failed(WHAT, lost),
                    Broken::Final(error) => Failed::for_good(error),
                }),
                status => Err(refused(WHAT, status, &mut answer)),
            }
        })?;
        match digest {
            Some(expected) if is_sha256(expected) && !fetched.digest.eq_ignore_ascii_case(expected) => {
                Err(ArtifactError::Digest { expected: one_line(expected, 80), found: fetched.digest })
            }
            _ => Ok(fetched),
        }
    }
}

/// Tells whether a digest is one that can be compared.
pub(super) fn is_sha256(digest: &str) -> bool {
    digest.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("sha256:"))
}

enum Broken {
    Lost(LostAnswer),
    Final(ArtifactError),
}

impl<E: Into<ArtifactError>> From<E> for Broken {
    fn from(error: E) -> Self {
        Self::Final(error.into())
    }
}

fn stream(answer: Response<Body>, into: &mut File, limit: u64) -> Result<FetchedBlob, Broken> {
    let body = answer.into_body();
    if body.length().is_some_and(|length| length > limit) {
        return Err(ArtifactError::TooLarge { limit }.into());
    }
    // The try before may have left a part.
    into.set_len(0)?;
    into.seek(SeekFrom::Start(0))?;
    let mut reader = body.into_reader();
    let mut buffer = vec![0; 64 << 10];
    let mut hash = Sha256::new();
    let mut size = 0;
    loop {
        let count = reader.read(&mut buffer).map_err(|error| Broken::Lost(Body::lost(error)))?;
        if count == 0 {
            into.flush()?;
            return Ok(FetchedBlob { size, digest: format!("sha256:{}", hex(&hash.finalize())) });
        }
        size += count as u64;
        // The length that the server named is only what it says.
        if size > limit {
            return Err(ArtifactError::TooLarge { limit }.into());
        }
        hash.update(&buffer[..count]);
        into.write_all(&buffer[..count])?;
    }
}

/// Judges a request without an answer, where it does no harm to make it again.
pub(super) fn failed(what: &'static str, lost: LostAnswer) -> Failed<ArtifactError> {
    let (reason, again) = match lost {
        LostAnswer::Unsent(reason) | LostAnswer::Unanswered(reason) => (reason, Again::Soon),
        LostAnswer::Impossible(reason) => (reason, Again::Never),
    };
    Failed { error: ArtifactError::Unavailable { what, reason }, again }
}

/// Judges an unsuccessful answer. A storage that takes too many requests says 503 or 429.
fn refused(what: &'static str, status: u16, answer: &mut Response<Body>) -> Failed<ArtifactError> {
    if is_trouble(status) || matches!(status, 408 | 429) {
        let reason = format!("status {status}");
        return Failed { error: ArtifactError::Unavailable { what, reason }, again: Again::Soon };
    }
    let header = answer.headers().get("x-ms-error-code").and_then(|code| code.to_str().ok());
    let message = match header.map(str::to_owned) {
        Some(code) => code,
        // The whole answer may hold the signed address, so only the code is taken from it.
        None => read(answer, MAX_ERROR)
            .map_or_else(|_| String::new(), |body| code(&String::from_utf8_lossy(&body))),
    };
    Failed::for_good(ArtifactError::Refused { what, status, message: one_line(&message, 100) })
}

/// Returns the code of an error in XML. What else it says can hold the address.
fn code(xml: &str) -> String {
    let code = xml.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    code.map_or_else(|| "the storage says nothing more".to_owned(), |(code, _)| code.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, secrets: &[&str]) {
        let signed = Signed::new(address.to_owned());
        assert_eq!(signed.secrets(), secrets);
        assert_eq!(format!("{signed:?}"), "Signed(***)");
    }

    #[test]
    fn the_signature_is_a_secret_in_both_forms() {
        check("https://b/x", &[]);
        check("https://b/x?sig=", &[]);
        check("https://b/x?se=1&sig=a%2Bb%3D&sp=r", &["a%2Bb%3D", "a+b="]);
        check("https://b/x?SIG=abc", &["abc"]);
        check("https://b/x?sig=a%2", &["a%2"]);
        check("https://b/x?sig=%zz%41", &["%zz%41", "%zzA"]);
    }

    #[test]
    fn the_address_stays_as_it_was_signed() {
        let signed = |text: &str| Signed::new(text.to_owned()).with("comp=block");
        assert_eq!(signed("https://b/x?sig=a%2Bb%3d%3D"), "https://b/x?sig=a%2Bb%3d%3D&comp=block");
        assert_eq!(signed("https://b/x"), "https://b/x?comp=block");
    }

    #[test]
    fn of_an_error_of_the_storage_its_code_alone_is_told() {
        assert_eq!(code("<Error><Code>BlobNotFound</Code><Url>sig=x</Url></Error>"), "BlobNotFound");
        assert_eq!(code("sig=x"), "the storage says nothing more");
    }
}
