//! The people of the table: what each may do to the server, and what the service answers them.

use signalbox::auth::access::{Action, Right};

use super::table::{Line, Needs, Programs};
use crate::support::Account;

/// What somebody is for the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The service knows no such caller, or no longer.
    Unknown,
    /// An account.
    Known,
    /// An administrator's account.
    Administrator,
}

/// What somebody is for the team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InTeam {
    Creator,
    Member,
    No,
}

/// The token of a program.
#[derive(Debug, Clone)]
pub struct Program {
    pub token: String,
    /// Whether it is for all servers of its user.
    pub is_for_all: bool,
    /// What its role allows, wherever it is.
    pub allows: Vec<Action>,
    /// Whether its user owns the server.
    pub is_of_owner: bool,
}

/// Somebody who calls the service.
#[derive(Debug, Clone)]
pub struct Person {
    pub name: String,
    pub standing: Standing,
    /// The code of the refusal of somebody who is unknown.
    pub refusal: &'static str,
    /// What the table lets them do to the server: no line stands for another one.
    pub may: Vec<Action>,
    pub in_team: InTeam,
    pub account: Option<Account>,
    /// Calls in place of the account.
    pub program: Option<Program>,
}

impl Person {
    /// An account that may do this.
    pub fn new(name: impl Into<String>, account: Account, may: &[Action]) -> Self {
        Self {
            name: name.into(),
            standing: Standing::Known,
            refusal: "",
            may: may.to_vec(),
            in_team: InTeam::No,
            account: Some(account),
            program: None,
        }
    }

    pub fn that_may(self, may: &[Action]) -> Self {
        Self { may: may.to_vec(), ..self }
    }

    /// Whether they may do this to the server.
    pub fn may(&self, action: Action) -> bool {
        self.may.contains(&action)
    }

    fn owns(&self) -> bool {
        self.may(Action::Own) || self.program.as_ref().is_some_and(|program| program.is_of_owner)
    }

    pub fn token(&self) -> Option<&str> {
        let of_account = self.account.as_ref().map(|account| account.token.as_str());
        self.program.as_ref().map(|program| program.token.as_str()).or(of_account)
    }
}

/// Sees the server, and has these rights of an operator.
pub fn operator(rights: &[Right]) -> Vec<Action> {
    [Action::See, Action::Respond].into_iter().chain(rights.iter().copied().map(Action::Use)).collect()
}

/// What an account needs in order to make the second factor that it must have, and to leave again.
pub const OPEN_WITHOUT_FACTOR: [&str; 9] = [
    "GET /api/v1/auth/me",
    "GET /api/v1/auth/passkeys",
    "POST /api/v1/auth/passkeys",
    "POST /api/v1/auth/passkeys/registration",
    "POST /api/v1/auth/step-up",
    "POST /api/v1/auth/totp",
    "POST /api/v1/auth/totp/confirm",
    "POST /api/v1/auth/logout",
    "GET /api/v1/service",
];

/// What the service does for a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The call is as allowed as anything: the answer is the one of the line.
    Done,
    /// 401
    Unknown,
    /// 403: they see it, but may not do this.
    Forbidden,
    /// 403: its token is not for this.
    TokenNotAllowed,
    /// 404: they may not know of it.
    NotFound,
}

/// What somebody gets who asks for this. The whole policy is here and in the two tables.
pub fn expected(line: &Line, person: &Person) -> Outcome {
    let is_open = line.needs == Needs::Nothing || person.standing == Standing::Unknown;
    let refused = person.program.as_ref().filter(|_| !is_open).and_then(|program| {
        let allows = |action| program.is_for_all && program.allows.contains(&action);
        match line.programs {
            Programs::Servers => None,
            Programs::Never => Some(Outcome::TokenNotAllowed),
            Programs::Account(action) | Programs::Hidden(action) if allows(action) => None,
            Programs::Account(_) => Some(Outcome::TokenNotAllowed),
            Programs::Hidden(_) if program.is_for_all && program.is_of_owner => Some(Outcome::TokenNotAllowed),
            Programs::Hidden(_) | Programs::Maker => Some(Outcome::NotFound),
            Programs::Managed if person.may(Action::Manage) || allows(Action::Manage) => None,
            Programs::Managed => Some(Outcome::TokenNotAllowed),
        }
    });
    refused.unwrap_or_else(|| of_people(line.needs, person))
}

fn of_people(needs: Needs, person: &Person) -> Outcome {
    let unless = |refused: Outcome, is_allowed: bool| if is_allowed { Outcome::Done } else { refused };
    let is_administrator = person.standing == Standing::Administrator;
    match needs {
        Needs::Nothing => Outcome::Done,
        _ if person.standing == Standing::Unknown => Outcome::Unknown,
        Needs::Account | Needs::Myself | Needs::Lists(_) => Outcome::Done,
        Needs::Administrator => unless(Outcome::Forbidden, is_administrator),
        Needs::Server(action) if person.may(Action::See) => unless(Outcome::Forbidden, person.may(action)),
        Needs::Server(_) => Outcome::NotFound,
        Needs::Within(shown, action) if person.may(shown) => unless(Outcome::Forbidden, person.may(action)),
        Needs::Within(..) => Outcome::NotFound,
        Needs::Hidden(action) => unless(Outcome::NotFound, person.may(action)),
        Needs::Mine => unless(Outcome::NotFound, person.owns()),
        Needs::MineShown => unless(Outcome::Forbidden, person.owns()),
        Needs::Team => match person.in_team {
            InTeam::Creator => Outcome::Done,
            InTeam::Member => unless(Outcome::Forbidden, is_administrator),
            InTeam::No => unless(Outcome::NotFound, is_administrator),
        },
    }
}
