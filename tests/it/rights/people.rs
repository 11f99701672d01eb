//! The people of the table: what each may do to the server, and what the service answers them.

use signalbox::auth::access::{Action, Right};

use super::table::Needs;
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

/// Somebody who calls the service. A token for programs will be one more of them.
#[derive(Debug, Clone)]
pub struct Person {
    pub name: &'static str,
    pub standing: Standing,
    /// The code of the refusal of somebody who is unknown.
    pub refusal: &'static str,
    /// What the table lets them do to the server: no line stands for another one.
    pub may: Vec<Action>,
    pub in_team: InTeam,
    pub account: Option<Account>,
}

impl Person {
    /// An account that may do this.
    pub fn new(name: &'static str, account: Account, may: &[Action]) -> Self {
        Self {
            name,
            standing: Standing::Known,
            refusal: "",
            may: may.to_vec(),
            in_team: InTeam::No,
            account: Some(account),
        }
    }

    /// Whether they may do this to the server.
    pub fn may(&self, action: Action) -> bool {
        self.may.contains(&action)
    }

    fn owns(&self) -> bool {
        self.may(Action::Own)
    }

    pub fn token(&self) -> Option<&str> {
        self.account.as_ref().map(|account| account.token.as_str())
    }
}

/// Sees the server, and has these rights of an operator.
pub fn operator(rights: &[Right]) -> Vec<Action> {
    [Action::See, Action::Respond].into_iter().chain(rights.iter().copied().map(Action::Use)).collect()
}

/// What the service does for a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The call is as allowed as anything: the answer is the one of the line.
    Done,
    /// 401
    Unknown,
    /// 403: they see it, but may not do this.
    Forbidden,
    /// 404: they may not know of it.
    NotFound,
}

/// What somebody gets who asks for this. The whole policy is here and in the two tables.
pub fn expected(needs: Needs, person: &Person) -> Outcome {
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
