//! The repository whose refs are leases: how git gets to it and in, and what it does there. What others left there is
//! read as claims of strangers, and nothing of the checkout's configuration is obeyed but its address and its header.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::charge::LeaseCharge;
use crate::base::explanation::Explanation;
use crate::base::object::ObjectId;
use crate::base::text::{one_line, percent_decoded, up_to};
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::forge::git_remote::GitRemote;
use crate::forge::github::api::Api;
use crate::forge::github::repository::RepositoryName;
use crate::forge::github::workflow_job::WorkflowJob;
use crate::forge::gitlab;
use crate::forge::gitlab::TokenHolder;
use crate::git::call::Call;
use crate::git::ref_calls::ref_in;
use crate::git::runner::Git;
use crate::lease::lease_record::{FoundLease, LeaseName, LeaseRecord, MAX_RECORD, PREFIX};
use crate::process::address::without_credential;
use crate::repository::scratch::Scratch;
use crate::repository::workspace::Remote;

/// The remote that is meant where none is named.
const DEFAULT: &str = "origin";

/// The most leases that are looked at. A matrix has 256 legs.
const MOST: usize = 1000;

/// What a commit may have beside its message, in bytes.
const HEAD: usize = 4 << 10;

/// The repository of the leases, and a scratch one beside it.
pub(super) struct LeaseRemote {
    scratch: Arc<Scratch>,
    url: String,
    /// The header by which it lets us in, which is a secret.
    header: Option<String>,
    is_sha256: bool,
    /// How people know it: without a credential.
    pub(super) shown: String,
    /// What no message may hold.
    secrets: Vec<String>,
    /// What was read of commits: they never change.
    read: RefCell<BTreeMap<ObjectId, Option<LeaseRecord>>>,
    /// What stops all calls.
    stop: Arc<AtomicBool>,
}

/// The result of a change of a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Swapped {
    /// It is as it was to be.
    Done,
    /// Somebody else was there: this is what the ref points at now.
    Other(Option<ObjectId>),
}

/// A repository whose refs hold records of ours, and how git gets in.
pub(crate) struct RefRemote {
    /// Its address and its header.
    pub(crate) remote: Remote,
    /// Whether its objects have the ids of SHA-256.
    pub(crate) is_sha256: bool,
    /// How people know it: without a credential.
    pub(crate) shown: String,
    /// What no message may hold.
    secrets: Vec<String>,
}

impl RefRemote {
    /// Finds a remote of a checkout, or the address that the caller gave with `option`.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn find(
        asked: Option<&str>,
        option: &'static str,
        checkout: &Git,
        session: &Session<'_>,
    ) -> Result<Self, Error> {
        let name = asked.unwrap_or(DEFAULT);
        let away = |message: String| Error::refused(message).of_kind(Kind::Unavailable);
        let hint = format!("write `{option} git=REMOTE` with a remote of the repository, or an address");
        // Git would read it as an option.
        if name.starts_with('-') {
            return Err(Error::refused(format!("invalid remote `{}`", one_line(name, 100))).with_hint(hint));
        }
        let top = checkout.line(&Call::new("rev-parse").with(&["--show-toplevel"]));
        // Leases are pushed, and for that a remote may have an address of its own.
        let configured = checkout.line(&Call::new("remote").with(&["get-url", "--push"]).named(name, ""));
        // `HOST:PATH` is not a path.
        let is_address = asked.is_some() && name.contains(['/', ':']);
        let (url, base) = match configured {
            Ok(url) => (url, top.as_ref().map_or(session.cwd.as_path(), Path::new)),
            Err(_) if is_address => (name.to_owned(), session.cwd.as_path()),
            Err(why) if top.is_err() => {
                return Err(away(format!("`{option} git` needs a git repository: {why}")).with_hint(hint));
            }
            Err(_) => {
                let message = format!("the repository has no remote `{}`", one_line(name, 100));
                return Err(away(message).with_hint(hint));
            }
        };
        // Git works in the scratch repository, and would look for a relative path from there.
        let is_path = !url.contains("://") && !up_to(&url, &['/']).contains(':');
        let url = if is_path { base.join(url).display().to_string() } else { url };
        let shown = shown(&url);
        let secrets = words(&url);
        let remote = let_in(url, checkout, session);
        Ok(Self { remote, is_sha256: is_sha256(checkout), shown, secrets })
    }

    /// Returns a message of git without the credential of the address.
    pub(crate) fn wiped(&self, why: &impl fmt::Display) -> Explanation {
        wiped(why, &self.remote.url, &self.shown, &self.secrets)
    }
}

fn is_sha256(checkout: &Git) -> bool {
    // The remote has the same kind: git brings nothing from a repository of one kind into one of the other.
    let format = checkout.line(&Call::new("rev-parse").with(&["--show-object-format"]));
    format.is_ok_and(|format| format == "sha256")
}

fn wiped(why: &impl fmt::Display, url: &str, shown: &str, secrets: &[String]) -> Explanation {
    let text = why.to_string().replace(url, shown);
    // An empty text would be found between any two letters.
    let all = secrets.iter().filter(|secret| !secret.is_empty());
    Explanation::new(all.fold(text, |text, secret| text.replace(secret.as_str(), "***")))
}

impl LeaseRemote {
    /// Finds a remote of a checkout, or the address that the caller gave.
    pub(super) fn find(asked: Option<&str>, checkout: &Git, session: &Session<'_>) -> Result<Self, Error> {
        let RefRemote { remote, is_sha256, shown, secrets } =
            RefRemote::find(asked, "--lock", checkout, session)?;
        Self::new(remote, shown, is_sha256, secrets, session)
    }

    /// Takes a remote that is known.
    pub(super) fn known(remote: Remote, checkout: &Git, session: &Session<'_>) -> Result<Self, Error> {
        let (shown, secrets) = (shown(&remote.url), words(&remote.url));
        Self::new(remote, shown, is_sha256(checkout), secrets, session)
    }

    fn new(
        remote: Remote,
        shown: String,
        is_sha256: bool,
        secrets: Vec<String>,
        session: &Session<'_>,
    ) -> Result<Self, Error> {
        let scratch = Scratch::new(&remote, is_sha256, session).map_err(|why| {
            Error::refused(format!("cannot make a scratch repository: {why}")).of_kind(Kind::Failed)
        })?;
        let Remote { url, header } = remote;
        let (scratch, read, stop) = (Arc::new(scratch), RefCell::default(), Arc::default());
        Ok(Self { scratch, url, header, is_sha256, shown, secrets, read, stop })
    }

    /// Takes a remote that another process of ours has found.
    pub(super) fn handed_on(lease: &LeaseCharge, session: &Session<'_>) -> Result<Self, Error> {
        let remote = Remote { url: lease.url.clone(), header: lease.header.clone() };
        let (shown, secrets) = (shown(&lease.url), words(&lease.url));
        Self::new(remote, shown, lease.is_sha256, secrets, session)
    }

    /// Returns what another process has to know to give this lease back.
    pub(super) fn charge(&self, name: &LeaseName) -> LeaseCharge {
        LeaseCharge {
            url: self.url.clone(),
            header: self.header.clone(),
            is_sha256: self.is_sha256,
            name: name.as_str().to_owned(),
        }
    }

    /// Returns the same for another thread, which is stopped for itself.
    pub(super) fn another(&self) -> Self {
        Self {
            scratch: Arc::clone(&self.scratch),
            url: self.url.clone(),
            header: self.header.clone(),
            is_sha256: self.is_sha256,
            shown: self.shown.clone(),
            secrets: self.secrets.clone(),
            read: RefCell::default(),
            stop: Arc::default(),
        }
    }

    /// Returns what stops the calls that go on, and all later ones.
    pub(super) fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Lets it be called again, after it was stopped.
    pub(super) fn anew(&mut self) {
        self.stop = Arc::default();
    }

    fn git(&self, limit: Duration) -> Git {
        self.scratch.connected.within(limit, &self.stop)
    }

    /// Makes the commit of a record.
    pub(super) fn commit(&self, record: &LeaseRecord) -> Result<ObjectId, Explanation> {
        let text = record.to_text().map_err(Explanation::from)?;
        self.scratch.commit(&text).map_err(Explanation::from)
    }

    /// Returns all leases.
    pub(super) fn look(&self, limit: Duration) -> Result<Vec<FoundLease>, Explanation> {
        let fetch = Call::fetch_from(&self.url)
            // What was fetched before must not outlive what the server has now.
            .with(&["--force", "--prune", "--depth=1"])
            .named(&format!("+{PREFIX}*:{PREFIX}*"), "");
        if let Err(why) = self.git(limit).line(&fetch) {
            // Where there is none, git fails without a word.
            let list = Call::refs_of(&self.url).named(PREFIX, "*");
            let listed = self.git(limit).line(&list).map_err(|why| self.wiped(&why))?;
            return if listed.is_empty() { Ok(Vec::new()) } else { Err(self.wiped(&why)) };
        }
        let list = Call::new("for-each-ref").with(&["--format=%(objectname) %(refname)"]).revision(PREFIX);
        let listed = self.scratch.git.line(&list).map_err(|why| self.wiped(&why))?;
        let rows = listed.lines().filter_map(|line| {
            let (oid, name) = line.split_once(' ')?;
            // Another name is not one of ours.
            Some((ObjectId::parse(oid).ok()?, LeaseName::parse(name).ok()?))
        });
        let rows: Vec<_> = rows.collect();
        if rows.len() > MOST {
            return Err(Explanation::new(format!(
                "there are more than {MOST} leases: somebody has to remove those that are old"
            )));
        }
        self.read_all(rows.iter().map(|(oid, _)| oid))?;
        let read = self.read.borrow();
        let found = rows.into_iter().map(|(oid, name)| {
            let record = read.get(&oid).cloned().flatten();
            FoundLease { name, oid, record }
        });
        Ok(found.collect())
    }

    /// Reads the records of commits, as far as they are commits with records.
    fn read_all<'o>(&self, oids: impl Iterator<Item = &'o ObjectId>) -> Result<(), Explanation> {
        let new: Vec<&ObjectId> = oids.filter(|oid| !self.read.borrow().contains_key(*oid)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let asked: String = new.iter().flat_map(|oid| [oid.as_str(), "\n"]).collect();
        let check = Call::new("cat-file").with(&["--batch-check=%(objecttype) %(objectsize)"]);
        let printed = self.scratch.git.bytes(&check, asked.as_bytes()).map_err(Explanation::from)?;
        let printed = String::from_utf8_lossy(&printed).into_owned();
        for (oid, line) in new.into_iter().zip(printed.lines()) {
            let size = line.strip_prefix("commit ").and_then(|size| size.parse::<usize>().ok());
            // Anybody may push there: what is larger than a record can be is not read.
            let record = size.filter(|size| *size <= MAX_RECORD + HEAD).and_then(|_| self.record(oid));
            self.read.borrow_mut().insert(oid.clone(), record);
        }
        Ok(())
    }

    fn record(&self, oid: &ObjectId) -> Option<LeaseRecord> {
        LeaseRecord::parse(&self.scratch.message(oid)?).ok()
    }

    /// Moves a ref, if it points where it is said to: compare-and-swap, of which the server is the judge.
    pub(super) fn swap(
        &self,
        name: &LeaseName,
        from: Option<&ObjectId>,
        to: Option<&ObjectId>,
        limit: Duration,
    ) -> Result<Swapped, Explanation> {
        let from_word = from.map_or("", ObjectId::as_str);
        let to_word = to.map_or("", ObjectId::as_str);
        let push = Call::push_to(&self.url)
            .option_value("--force-with-lease=", &format!("{name}:{from_word}"))
            .named(&format!("{to_word}:{name}"), "");
        let Err(why) = self.git(limit).line(&push) else { return Ok(Swapped::Done) };
        // It may have been taken all the same, or somebody else was there before: the ref tells.
        match self.at(name, limit) {
            Ok(at) if at.as_ref() == to => Ok(Swapped::Done),
            Ok(at) if at.as_ref() == from => Err(self.wiped(&why)),
            Ok(at) => Ok(Swapped::Other(at)),
            Err(_) => Err(self.wiped(&why)),
        }
    }

    /// Returns what a ref points at.
    pub(super) fn at(&self, name: &LeaseName, limit: Duration) -> Result<Option<ObjectId>, Explanation> {
        let list = Call::refs_of(&self.url).named(name.as_str(), "");
        let printed = self.git(limit).line(&list).map_err(|why| self.wiped(&why))?;
        ref_in(&printed, name.as_str()).map_err(Explanation::from)
    }

    /// Returns a message of git without the credential of the address.
    fn wiped(&self, why: &impl fmt::Display) -> Explanation {
        wiped(why, &self.url, &self.shown, &self.secrets)
    }
}

/// Returns an address as people know it: without its credential, and without a query, which may hold a token.
fn shown(url: &str) -> String {
    let plain = without_credential(url);
    let end = if plain.contains("://") { plain.find(['?', '#']) } else { None };
    one_line(&plain[..end.unwrap_or(plain.len())], 200)
}

/// Returns the name and the password that an address holds.
fn credential(url: &str) -> Option<(&str, &str)> {
    let (_, rest) = url.split_once("://")?;
    let server = rest.split(['/', '?', '#']).next()?;
    let (credential, _) = server.rsplit_once('@')?;
    Some(credential.split_once(':').unwrap_or((credential, "")))
}

/// Returns what of an address no message may hold.
fn words(url: &str) -> Vec<String> {
    let (name, word) = credential(url).unwrap_or_default();
    // A token alone stands where others have their name.
    let secret = if word.is_empty() && url.starts_with("http") && name.len() > 8 { name } else { word };
    [secret.to_owned(), percent_decoded(secret)].into()
}

/// Works out how git gets in, the first of: ll-loop's own token, where the address is that of the job's repository; the
/// password of the address; the header that the checkout has for it, as `actions/checkout` leaves one; the token of the
/// job; and as git gets in for the user.
fn let_in(url: String, checkout: &Git, session: &Session<'_>) -> Remote {
    let is_http = url.starts_with("http://") || url.starts_with("https://");
    if !is_http {
        return Remote { url, header: None };
    }
    let plain = without_credential(&url);
    let own = session.env.own_token().and_then(|token| of_job(&plain, token, TokenHolder::Other, session));
    let in_address = || {
        let (name, word) = credential(&url).filter(|(_, word)| !word.is_empty())?;
        let both = format!("{}:{}", percent_decoded(name), percent_decoded(word));
        Some(format!("Authorization: Basic {}", STANDARD.encode(both)))
    };
    let in_checkout = || {
        let ask =
            Call::new("config").with(&["--get-urlmatch"]).revision("http.extraHeader").named(&plain, "");
        // More than one line would be more than one header.
        checkout.line(&ask).ok().filter(|header| !header.is_empty() && !header.contains('\n'))
    };
    let of_the_job = || {
        let token = session.env.token().or_else(|| session.env.get("CI_JOB_TOKEN"))?;
        of_job(&plain, token, TokenHolder::Job, session)
    };
    let header = own.or_else(in_address).or_else(in_checkout).or_else(of_the_job);
    let url = if header.is_some() { plain } else { url };
    Remote { url, header }
}

/// Returns the header with a token, if the address is that of the repository of this job: no other server gets it.
fn of_job(url: &str, token: &str, holder: TokenHolder, session: &Session<'_>) -> Option<String> {
    let env = &session.env.lookup();
    let remote = if session.env.get("GITLAB_CI").is_some() {
        gitlab::remote(env, holder, token).ok()?
    } else {
        let repository = WorkflowJob::read(env).repository.as_deref().and_then(RepositoryName::parse)?;
        let api = Api::from_env(env, Some(token.to_owned())).ok()?;
        GitRemote::with_token(&api, &repository, env)?
    };
    (spelled(&remote.url) == spelled(url)).then_some(remote.header)
}

/// Writes an address in one way: servers do not tell letters of another case apart in it, nor the ending `.git`.
fn spelled(url: &str) -> String {
    let url = url.trim_end_matches('/');
    url.strip_suffix(".git").unwrap_or(url).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_tells_its_credential_and_is_spelled_in_one_way() {
        assert_eq!(credential("https://me:ge%40heim@x.org/o/r.git"), Some(("me", "ge%40heim")));
        assert_eq!(credential("https://token@x.org/o/r"), Some(("token", "")));
        for url in ["https://x.org/o/r@2", "git@x.org:o/r", "/srv/a@b"] {
            assert_eq!(credential(url), None, "{url}");
        }
        assert_eq!(shown("https://me:geheim@x.org/o/r?private_token=geheim"), "https://x.org/o/r");
        assert_eq!(shown("/srv/what?"), "/srv/what?");
        assert_eq!(spelled("https://X.org/O/r.git/"), spelled("https://x.org/o/R"));
        assert_ne!(spelled("https://x.org/o/r"), spelled("http://x.org/o/r"));
    }
}
