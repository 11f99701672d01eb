//! `/enrolments`: tokens with which machines make themselves servers ([`super::enrol`]).

mod plain_policy;

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::actix::web::{Resource, delete, get, post};
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::json;
use signalbox_agent::policy::Policy;

use super::error::ApiError;
use super::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use super::extract::fault::{Faults, Part};
use super::extract::field::{At, Name, Number, PROSE, Tags, described, prose, string, text_field};
use super::extract::param::PageQuery;
use super::extract::{self, CallerAt, Checked, IdPath, NoQuery, Recent, SignedIn};
use super::field_out::{Id, TimeOut};
use super::grants::{SubjectIn, SubjectOut, subject_of};
use super::grants_in::{check_rights, rights_of};
use super::path::at;
use super::people_out::{RightIn, RightOut, RoleIn, RoleOut};
use super::reply::{Done, Listed, fault_of};
use super::task::run_detached;
use super::token_terms::{self, DAY_MS, Life, Network, check_length, check_networks};
use crate::auth::{Caller, enrolment};
use crate::state::State;
use crate::store::{
    Enrolment, EnrolmentGrant, EnrolmentTerms, GrantNames, GrantSubject, NewEnrolment, PageRequest, Store,
};

/// Short: its token lies in images and scripts.
const LIFE: Life = Life { usual_ms: 7 * DAY_MS, latest: |now| now.plus_millis(90 * DAY_MS), longest: "90 days" };

/// More servers at once than a script makes.
const MAX_USES: u64 = 1_000;

/// Each is a grant for each server; a grant for a tag is for more.
const MAX_GRANTS: usize = 20;

/// Some hundred lines.
const MAX_POLICY: usize = 16_384;

text_field!(
    /// The text of a policy file of the agent.
    AgentPolicy(String),
    |text, location| {
        let refused = |msg: String| Err(Faults::at(location, "value_error.policy", msg));
        let text = prose(text, 1, MAX_POLICY, location)?;
        if text.contains('\r') {
            return refused("end lines with a line feed alone".to_owned());
        }
        match Policy::parse(&text) {
            Err(detail) => refused(detail),
            // The service must not be able to choose whose signatures count.
            Ok(policy) if policy.asks_for_signatures() || policy.name.is_some() || policy.signers.is_some() => refused(
                "a policy that asks for signatures does not come from the service: name the signers where install.sh runs, with --signers"
                    .to_owned(),
            ),
            Ok(_) => match plain_policy::fault_of(&text) {
                Some(detail) => refused(detail),
                None => Ok(text),
            },
        }
    },
    json!({ "type": "string", "minLength": 1, "maxLength": MAX_POLICY, "pattern": PROSE, "example": "commands = \"on\"\n" })
);

/// What somebody besides you may do to each server.
#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct EnrolmentGrantIn {
    subject: CrossChecked<SubjectIn>,
    role: RoleIn,
    /// For the role `operator`, some of the rights. Defaults to all of them.
    #[deserr(default)]
    rights: Option<Vec<RightIn>>,
}

impl CrossCheck for EnrolmentGrantIn {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        check_rights(fields.sound("role"), fields)
    }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct EnrolmentIn {
    /// What the machines have in common. Their keys have this name, too.
    name: Name,
    /// How many servers can be made with it.
    uses: Number<1, { MAX_USES }>,
    /// The tags of each server.
    #[deserr(default)]
    tags: Option<Tags>,
    /// What others may do to each server, at most 20.
    #[deserr(default)]
    grants: Option<Vec<CrossChecked<EnrolmentGrantIn>>>,
    /// The policy file that install.sh writes on a machine that has none: one line for each key, and nothing about signatures.
    #[deserr(default)]
    policy: Option<AgentPolicy>,
    /// When the token stops working: at most in 90 days. Defaults to 7 days from now.
    #[deserr(default)]
    expires_at: Option<At>,
    /// The networks from which it may be used, at most 20. Defaults to all.
    #[deserr(default)]
    networks: Option<Vec<Network>>,
}

impl CrossCheck for EnrolmentIn {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        let grants: Option<Vec<CrossChecked<EnrolmentGrantIn>>> = fields.sound("grants");
        let mut faults = Faults::default();
        let checks = [
            check_length("grants", grants.map(|grants| grants.len()), MAX_GRANTS, fields.location),
            check_networks(fields),
        ];
        for found in checks.into_iter().filter_map(Result::err) {
            faults.0.extend(found.0);
        }
        if faults.0.is_empty() { Ok(()) } else { Err(faults) }
    }
}

/// What somebody besides you may do to each server.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct EnrolmentGrantOut {
    /// A user or team that was deleted has no name, and gets nothing.
    subject: SubjectOut,
    role: RoleOut,
    rights: Vec<RightOut>,
}

/// An enrolment without its token.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct EnrolmentOut {
    id: Id,
    name: String,
    /// The public part of the token.
    prefix: String,
    /// The tags of each server.
    tags: Vec<String>,
    /// What others may do to each server.
    grants: Vec<EnrolmentGrantOut>,
    /// The policy file that install.sh writes on a machine that has none.
    policy: Option<String>,
    /// How many servers can be made with it.
    uses: u32,
    /// How many of them have not been made yet.
    uses_left: u32,
    /// The networks from which it may be used; empty for all.
    networks: Vec<String>,
    created_at: TimeOut,
    expires_at: TimeOut,
    /// When a server was last made with it.
    last_used_at: Option<TimeOut>,
    /// The address of that machine.
    last_used_address: Option<String>,
}

impl EnrolmentOut {
    fn new(enrolment: Enrolment, names: &GrantNames) -> Self {
        let EnrolmentTerms { tags, grants, policy } = enrolment.terms;
        let grant = |grant: EnrolmentGrant| EnrolmentGrantOut {
            subject: SubjectOut::new(grant.subject, names),
            role: RoleOut(grant.role),
            rights: grant.rights.iter().map(RightOut).collect(),
        };
        Self {
            id: Id(enrolment.id),
            name: enrolment.name,
            prefix: enrolment.prefix,
            tags,
            grants: grants.into_iter().map(grant).collect(),
            policy,
            uses: enrolment.uses,
            uses_left: enrolment.uses_left,
            networks: enrolment.networks,
            created_at: TimeOut(enrolment.created_at),
            expires_at: TimeOut(enrolment.expires_at),
            last_used_at: enrolment.last_used_at.map(TimeOut),
            last_used_address: enrolment.last_used_address,
        }
    }
}

/// An enrolment with its token.
#[derive(Serialize, Apiv2Schema)]
pub struct FreshEnrolmentOut {
    #[serde(flatten)]
    about: EnrolmentOut,
    /// The secret. Only this response contains it.
    token: String,
}

/// The names of the users and teams in the grants of these enrolments.
async fn names(store: &Store, enrolments: &[Enrolment]) -> Result<GrantNames, ApiError> {
    let (mut users, mut teams) = (Vec::new(), Vec::new());
    for grant in enrolments.iter().flat_map(|enrolment| &enrolment.terms.grants) {
        match grant.subject {
            GrantSubject::User(id) => users.push(id),
            GrantSubject::Team(id) => teams.push(id),
        }
    }
    Ok(store.names_for_grants(&users, &teams, &[]).await?)
}

/// List your enrolments
///
/// Newest first, without their tokens. Those that have expired or are used up stay in the list until you revoke them.
#[api_v2_operation(tags(Enrolments), operation_id = "list_enrolments")]
pub async fn list(ask: Checked<SignedIn, PageQuery>) -> Result<Listed<EnrolmentOut>, ApiError> {
    let page: PageRequest = ask.query.into();
    let found = ask.state.store.list_enrolments(ask.subject.caller.user_id, page).await?;
    let names = names(&ask.state.store, &found.items).await?;
    let items = found.items.into_iter().map(|enrolment| EnrolmentOut::new(enrolment, &names)).collect();
    Ok(Listed { items, total: found.total })
}

/// Get an enrolment
#[api_v2_operation(tags(Enrolments), operation_id = "read_enrolment")]
pub async fn read(ask: Checked<CallerAt<IdPath>>) -> Result<actix_web::web::Json<EnrolmentOut>, ApiError> {
    let CallerAt { caller, path, .. } = ask.subject;
    let found = ask.state.store.find_enrolment(caller.user_id, path.id.0).await?.ok_or_else(not_found)?;
    let names = names(&ask.state.store, std::slice::from_ref(&found)).await?;
    Ok(actix_web::web::Json(EnrolmentOut::new(found, &names)))
}

/// Create an enrolment
///
/// Machines that show its token at `POST /enrol` become servers of yours, each with a key of its own; `install.sh --enrol` does
/// that. The token can do nothing else. Answers 403 `step_up_required` if the service has `--step-up` and you proved longer ago than
/// that who you are.
#[api_v2_operation(tags(Enrolments), operation_id = "create_enrolment")]
pub async fn create(
    ask: Checked<Recent<SignedIn>, NoQuery, extract::Json<CrossChecked<EnrolmentIn>>>,
) -> Result<CreatedJson<FreshEnrolmentOut>, ApiError> {
    let Recent(SignedIn { caller, actor }) = ask.subject;
    let extract::Json(CrossChecked(input)) = ask.body;
    let now = ask.state.clock.now();
    let expires_at = LIFE.end(input.expires_at, now)?;
    let grants = grants_of(&ask.state, &caller, input.grants.unwrap_or_default()).await?;
    let fresh = enrolment::generate().map_err(ApiError::internal)?;
    let Number(uses) = input.uses;
    let new = NewEnrolment {
        owner_id: caller.user_id,
        name: input.name.0,
        prefix: fresh.prefix,
        digest: fresh.digest.to_vec(),
        terms: EnrolmentTerms {
            tags: input.tags.unwrap_or_default().0,
            grants,
            policy: input.policy.map(|AgentPolicy(text)| text),
        },
        uses: u32::try_from(uses).unwrap_or_default(),
        networks: token_terms::stored(input.networks),
        now,
        expires_at,
    };
    let state = ask.state.clone();
    let made = run_detached(async move { Ok(state.store.create_enrolment(new, actor).await?) }).await?;
    let made = made.ok_or_else(|| faulty("grants", "value_error.unknown_subject", UNKNOWN))?;
    let names = names(&ask.state.store, std::slice::from_ref(&made)).await?;
    let token = fresh.token.expose_secret().to_owned();
    Ok(CreatedJson(FreshEnrolmentOut { about: EnrolmentOut::new(made, &names), token }))
}

/// The grants of each server, if the caller may give them.
async fn grants_of(
    state: &State,
    caller: &Caller,
    asked: Vec<CrossChecked<EnrolmentGrantIn>>,
) -> Result<Vec<EnrolmentGrant>, ApiError> {
    let mut grants = Vec::with_capacity(asked.len());
    for (index, CrossChecked(grant)) in asked.into_iter().enumerate() {
        let subject = match subject_of(state, caller, grant.subject.0).await {
            Ok((subject, _)) => subject,
            Err(ApiError::Invalid(_)) => return Err(faulty_subject(index, "value_error.unknown_subject", UNKNOWN)),
            Err(error) => return Err(error),
        };
        if subject == GrantSubject::User(caller.user_id) {
            return Err(faulty_subject(index, "value_error.owner", "this account owns the servers"));
        }
        grants.push(EnrolmentGrant { subject, role: grant.role.0, rights: rights_of(grant.role, grant.rights) });
    }
    Ok(grants)
}

/// Revoke an enrolment
///
/// Its token stops working immediately, on every instance. The servers that were made with it stay, and their keys work.
#[api_v2_operation(tags(Enrolments), operation_id = "revoke_enrolment")]
pub async fn revoke(ask: Checked<Recent<CallerAt<IdPath>>>) -> Result<Done, ApiError> {
    let Recent(CallerAt { caller, actor, path }) = ask.subject;
    let state = ask.state;
    let revoked = run_detached(async move {
        let revoked = state.store.revoke_enrolment(caller.user_id, path.id.0, actor).await?;
        Ok(revoked)
    });
    if revoked.await? { Ok(Done("Enrolment revoked")) } else { Err(not_found()) }
}

fn not_found() -> ApiError {
    ApiError::not_found("Enrolment not found")
}

const UNKNOWN: &str = "there is no such user or team";

/// A fault of the subject of one of the grants.
fn faulty_subject(index: usize, kind: &str, msg: &str) -> ApiError {
    let grants = ValuePointerRef::Origin.push_key("grants");
    let grant = grants.push_index(index);
    ApiError::Invalid(Faults::at(grant.push_key("subject"), kind, msg).within(Part::Body))
}

fn faulty(field: &str, kind: &str, msg: &str) -> ApiError {
    ApiError::Invalid(fault_of(field, kind, msg).within(Part::Body))
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/enrolments").route(get().to(list)).route(post().to(create)),
        at("/enrolments/{id}").route(get().to(read)).route(delete().to(revoke)),
    ]
}
