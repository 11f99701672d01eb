//! Who a person is, as the claims of the provider say.

use std::str::FromStr;

use email_address::EmailAddress;
use serde_json::{Map, Value};

use crate::store::NewIdentity;

/// Groups beyond this number are left out; somebody in more has a provider that has to be asked for fewer.
const MAX_GROUPS: usize = 500;
/// A longer name of a group is left out.
const MAX_GROUP: usize = 100;

/// The longest e-mail address (RFC 5321).
const MAX_EMAIL: usize = 254;

/// User names have from 3 to 64 characters, and room for a number.
const MIN_USERNAME: usize = 3;
const MAX_USERNAME: usize = 60;

const MAX_FULL_NAME: usize = 200;

/// The user name of somebody whose name at the provider has no letter that may stand in one.
const NAMELESS: &str = "user";

/// A person, as the provider described them in a sign-in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    pub issuer: String,
    pub subject: String,
    pub email: Option<String>,
    /// Whether the provider has made sure that the address is theirs.
    pub is_email_verified: bool,
    /// What may become the user name.
    pub username: String,
    pub full_name: String,
    pub groups: Vec<String>,
    /// The provider's name of its session.
    pub sid: Option<String>,
    /// When the provider last asked them who they are, in seconds since the epoch.
    pub auth_time: Option<i64>,
}

impl Identity {
    /// Reads verified claims. Those of the token come first, then those that the provider told when asked.
    pub fn of<'a>(
        issuer: &str,
        subject: &str,
        token: &'a Map<String, Value>,
        asked: &'a Map<String, Value>,
        groups: &str,
    ) -> Self {
        let given = |claims: &'a Map<String, Value>, name: &str| claims.get(name).filter(|claim| !claim.is_null());
        let claim = |name: &str| given(token, name).or_else(|| given(asked, name));
        let text = |name: &str| claim(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        // The address and what is said about it come from one place.
        let source = if given(token, "email").is_some() { token } else { asked };
        let email = source.get("email").and_then(Value::as_str).map(str::trim).filter(|email| is_email(email));
        let is_email_verified = email.is_some() && source.get("email_verified").is_some_and(is_true);
        let local_part = email.and_then(|email| email.split_once('@')).map(|(local, _)| local);
        Self {
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
            email: email.map(str::to_owned),
            is_email_verified,
            username: username_of(text("preferred_username"), local_part),
            full_name: full_name_of(text("name").unwrap_or_default()),
            groups: claim(groups).map(groups_of).unwrap_or_default(),
            auth_time: token.get("auth_time").and_then(Value::as_i64),
            sid: token.get("sid").and_then(Value::as_str).filter(|sid| !sid.is_empty()).map(str::to_owned),
        }
    }

    pub fn verified_email(&self) -> Option<&str> {
        self.email.as_deref().filter(|_| self.is_email_verified)
    }

    /// What is stored of them.
    pub fn to_store(&self) -> NewIdentity {
        NewIdentity {
            issuer: self.issuer.clone(),
            subject: self.subject.clone(),
            email: self.email.clone(),
            groups: self.groups.clone(),
        }
    }
}

fn is_email(text: &str) -> bool {
    text.len() <= MAX_EMAIL && EmailAddress::from_str(text).is_ok_and(|email| email.domain().contains('.'))
}

/// Some providers send truth as text.
fn is_true(value: &Value) -> bool {
    value.as_bool().unwrap_or_else(|| value.as_str() == Some("true"))
}

/// The groups of a claim: a list, or a single name.
fn groups_of(claim: &Value) -> Vec<String> {
    let listed = match claim {
        Value::Array(names) => names.as_slice(),
        single => std::slice::from_ref(single),
    };
    let fits =
        |name: &&str| !name.is_empty() && name.chars().count() <= MAX_GROUP && !name.chars().any(char::is_control);
    let mut groups: Vec<String> =
        listed.iter().filter_map(Value::as_str).filter(fits).map(str::to_owned).take(MAX_GROUPS).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// A user name of the letters that may stand in one. A name that is an e-mail address gives its local part.
fn username_of(preferred: Option<&str>, local_part: Option<&str>) -> String {
    let fitting = |text: &str| {
        let text = text.split_once('@').map_or(text, |(local, _)| local);
        let kept: String = text
            .chars()
            .map(|letter| if letter == ' ' { '.' } else { letter })
            .filter(|letter| letter.is_ascii_alphanumeric() || "_.-".contains(*letter))
            .take(MAX_USERNAME)
            .collect();
        kept
    };
    let candidates = [preferred, local_part].into_iter().flatten().map(fitting);
    let named: Vec<String> =
        candidates.filter(|name| name.contains(|letter: char| letter.is_ascii_alphanumeric())).collect();
    match named.iter().find(|name| name.len() >= MIN_USERNAME).or(named.first()) {
        Some(name) if name.len() < MIN_USERNAME => format!("{name}-{NAMELESS}"),
        Some(name) => name.clone(),
        None => NAMELESS.to_owned(),
    }
}

fn full_name_of(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(MAX_FULL_NAME).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(token: Value, asked: Value) -> Identity {
        let object = |value: Value| value.as_object().cloned().unwrap();
        Identity::of("https://sso.example.com", "42", &object(token), &object(asked), "groups")
    }

    #[test]
    fn a_user_name_has_only_what_may_stand_in_one() {
        let name = |claims: Value| read(claims, json!({})).username;

        assert_eq!(name(json!({ "preferred_username": "ada" })), "ada");
        assert_eq!(name(json!({ "preferred_username": "ada@corp.example.com" })), "ada");
        assert_eq!(name(json!({ "preferred_username": "Ada Lovelace" })), "Ada.Lovelace");
        assert_eq!(name(json!({ "preferred_username": "Ünal/../x" })), "nal..x");
        assert_eq!(name(json!({ "email": "grace.h@example.com" })), "grace.h");
        assert_eq!(name(json!({ "preferred_username": "李", "email": "li.wei@example.com" })), "li.wei");
        assert_eq!(name(json!({ "preferred_username": "al" })), "al-user");
        assert_eq!(name(json!({ "preferred_username": "李" })), "user");
        assert_eq!(name(json!({ "preferred_username": 7 })), "user");
        assert_eq!(name(json!({ "preferred_username": "a".repeat(500) })).len(), MAX_USERNAME);
    }

    #[test]
    fn an_address_is_verified_only_by_the_place_that_names_it() {
        let verified = |token: Value, asked: Value| read(token, asked).verified_email().map(str::to_owned);
        let ada = || Some("ada@example.com".to_owned());

        assert_eq!(verified(json!({ "email": "ada@example.com", "email_verified": true }), json!({})), ada());
        assert_eq!(verified(json!({}), json!({ "email": "ada@example.com", "email_verified": "true" })), ada());
        assert_eq!(
            verified(json!({ "email": null }), json!({ "email": "ada@example.com", "email_verified": true })),
            ada()
        );
        assert_eq!(verified(json!({ "email": "ada@example.com" }), json!({ "email_verified": true })), None);
        assert_eq!(verified(json!({ "email": "ada@example.com", "email_verified": false }), json!({})), None);
        assert_eq!(verified(json!({ "email": "ada@example.com", "email_verified": "yes" }), json!({})), None);
        assert_eq!(verified(json!({ "email": "not an address", "email_verified": true }), json!({})), None);
    }

    #[test]
    fn groups_are_names_in_a_list_or_a_single_name() {
        let groups = |claim: Value| read(json!({ "groups": claim }), json!({})).groups;

        assert_eq!(groups(json!(["ops", "dev", "ops", 7, "", "line\nbreak"])), ["dev", "ops"]);
        assert_eq!(groups(json!("ops")), ["ops"]);
        assert_eq!(groups(json!({ "ops": true })), Vec::<String>::new());
        assert_eq!(groups(json!(["a".repeat(MAX_GROUP + 1)])), Vec::<String>::new());
        assert_eq!(groups(json!((0..5_000).collect::<Vec<_>>())), Vec::<String>::new());
        let many: Vec<String> = (0..5_000).map(|number| format!("group-{number}")).collect();
        assert_eq!(groups(json!(many)).len(), MAX_GROUPS);
    }
}
