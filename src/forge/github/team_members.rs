//! Whether an account is in a team of an organisation, which only a token tells that may read its members.

use serde::Deserialize;

use super::api::{Api, ApiError};
use super::github_server::Flavour;
use crate::base::text::percent_encoded;
use crate::people::ruling::Account;

/// The most teams of an organisation with similar names that are looked at: as many as every server of the kind lists at once.
const MOST_SIMILAR: &str = "50";

#[derive(Deserialize)]
struct TeamMember {
    state: String,
}

#[derive(Deserialize)]
struct SimilarTeams {
    data: Vec<ListedTeam>,
}

#[derive(Deserialize)]
struct ListedTeam {
    id: u64,
    name: String,
}

#[derive(Deserialize)]
struct ListedMember {
    id: u64,
}

/// Tells whether an account is in a team, `ORGANISATION/TEAM`, and has accepted that. Where the token may not read the team, the
/// server says the same as where there is none.
///
/// # Errors
/// The server does not answer, or not to this token.
pub fn is_member(api: &Api, team: &str, account: &Account) -> Result<bool, ApiError> {
    let Some((organisation, name)) = team.split_once('/') else { return Ok(false) };
    let (organisation, login) = (percent_encoded(organisation), percent_encoded(&account.name));
    let found = match api.server().flavour() {
        Flavour::Github => {
            let name = percent_encoded(&name.to_ascii_lowercase());
            let path = format!("/orgs/{organisation}/teams/{name}/memberships/{login}");
            api.get::<TeamMember>(&path, &[]).map(|member| member.state == "active")
        }
        Flavour::Gitea | Flavour::Forgejo => on_gitea(api, &organisation, name, &login, account.id),
    };
    match found {
        Err(ApiError::NotFound { .. }) => Ok(false),
        found => found,
    }
}

/// Asks Gitea, where a team is known by a number and whose member it names has an id.
fn on_gitea(api: &Api, organisation: &str, name: &str, login: &str, id: u64) -> Result<bool, ApiError> {
    let query = [("q", name), ("limit", MOST_SIMILAR)];
    let similar: SimilarTeams = api.get(&format!("/orgs/{organisation}/teams/search"), &query)?;
    let team = similar.data.into_iter().find(|team| team.name.eq_ignore_ascii_case(name));
    let Some(team) = team else { return Ok(false) };
    let member: ListedMember = api.get(&format!("/teams/{}/members/{login}", team.id), &[])?;
    Ok(member.id == id)
}
