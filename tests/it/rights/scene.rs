//! One service with a server, everybody of the table, and the calls that they make.

use std::collections::HashMap;
use std::fmt;

use serde_json::{Value, json};
use signalbox::auth::access::{Action, Right};
use signalbox::config::Config;
use uuid::Uuid;

use super::objects::Object;
use super::people::{InTeam, Person, Program, Standing, operator};
use super::table::Line;
use crate::support::alerts::{Alarms, Threshold};
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::socket::Received;
use crate::support::{Account, Client, TestService, text_of, uuid_of};

/// The tag that the server has.
pub const TAG: &str = "shared";
/// The tag that it had.
const FORMER_TAG: &str = "former";

pub struct Scene {
    pub service: TestService,
    pub people: Vec<Person>,
    pub owner: Account,
    pub administrator: Account,
    pub server_id: Uuid,
    pub alert_id: Uuid,
    pub command_id: Uuid,
    /// The member of the granted team.
    pub member_id: Uuid,
    /// Somebody whom calls name.
    pub spare: Account,
    pub spares: HashMap<Object, Uuid>,
    names: usize,
}

/// An answer, or what a socket said.
pub struct Told {
    pub status: u16,
    pub text: String,
    pub is_socket: bool,
}

impl Told {
    /// The code of an error, empty for other answers.
    pub fn code(&self) -> String {
        let body: Value = serde_json::from_str(&self.text).unwrap_or_default();
        body["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status, self.text.chars().take(200).collect::<String>())
    }
}

/// What a grant is for.
enum To {
    Server,
    Tag(&'static str),
    All,
}

impl Scene {
    /// With people who have signed in.
    pub async fn of_people() -> Self {
        let mut scene = Self::start().await;
        scene.gather().await;
        scene.settle().await
    }

    /// With programs that have tokens of the owner, of every role and scope, and from this network and another one.
    pub async fn of_programs() -> Self {
        let mut scene = Self::start().await;
        scene.gather_programs().await;
        scene.settle().await
    }

    /// With nobody yet.
    pub async fn of_nobody() -> Self {
        let mut scene = Self::start().await;
        scene.member_id = scene.service.register("member").await.id;
        scene.settle().await
    }

    /// The same data and sessions, with other settings.
    pub async fn restarted(self, adjust: impl FnOnce(&mut Config)) -> Self {
        let service = TestService::start_on(self.service.stop().await, adjust).await;
        Self { service, ..self }
    }

    /// So that the list of silences is not empty.
    async fn settle(mut self) -> Self {
        self.object(Object::Silence, false).await;
        self
    }

    async fn start() -> Self {
        let service = TestService::start_with(|config| config.quotas.grants = 10_000).await;
        // The first account is the administrator.
        let administrator = service.register("administrator").await;
        let owner = service.register("owner").await;
        let spare = service.register("spare").await;
        let (server_id, key) = service.server_with_key(&owner, "web-1").await;
        let mut scene = Self {
            people: Vec::new(),
            owner: owner.clone(),
            administrator: administrator.clone(),
            server_id,
            alert_id: Uuid::nil(),
            command_id: Uuid::nil(),
            member_id: Uuid::nil(),
            spare,
            spares: HashMap::new(),
            names: 0,
            service,
        };
        scene.use_server(&key).await;
        scene.tag(&[TAG, FORMER_TAG]).await;
        scene
    }

    async fn gather_programs(&mut self) {
        let member = self.team_member().await;
        let scopes = [
            ("all", json!({"all": true})),
            ("its tag", json!({"tag": TAG})),
            ("another tag", json!({"tag": "another"})),
            ("its id", json!({"server_ids": [self.server_id]})),
            ("another id", json!({"server_ids": [self.service.server(&self.owner, "web-9").await]})),
        ];
        let operator = operator(&Right::ALL);
        let roles = [
            ("viewer", vec![Action::See]),
            ("responder", vec![Action::See, Action::Respond]),
            ("operator", operator.clone()),
            ("manager", [operator, vec![Action::Manage]].concat()),
        ];
        let mut people = Vec::new();
        for (scope_name, scope) in &scopes {
            let is_in_scope = !scope_name.contains("another");
            for (role, allows) in &roles {
                let token = json!({"role": role, "scope": scope, "networks": ["127.0.0.0/8"]});
                let may = if is_in_scope { allows.as_slice() } else { &[] };
                let name = format!("{role} for {scope_name}");
                people.push(self.program(name, &self.owner, token, allows).await.that_may(may));
            }
            let (role, allows) = &roles[3];
            let token = json!({"role": role, "scope": scope, "networks": ["192.0.2.0/24"]});
            let name = format!("{role} for {scope_name} from elsewhere");
            let elsewhere = self.program(name, &self.owner, token, allows).await;
            people.push(Person { standing: Standing::Unknown, refusal: "token_invalid", ..elsewhere });
        }
        let some = super::people::operator(&[Right::Logs, Right::Containers]);
        let token = json!({"role": "operator", "rights": ["logs", "containers"], "scope": {"all": true}});
        people.push(self.program("operator of some".into(), &self.owner, token, &some).await.that_may(&some));
        // The role of the token is more than its user has.
        let (_, manager) = &roles[3];
        let token = json!({"role": "manager", "scope": {"all": true}});
        let account = member.account.clone().unwrap();
        people.push(self.program("manager of a member".into(), &account, token, manager).await.that_may(&member.may));
        self.people = people;
    }

    /// A program with a token of this account.
    async fn program(&self, name: String, account: &Account, token: Value, allows: &[Action]) -> Person {
        let mut body = json!({"name": name});
        body.as_object_mut().unwrap().extend(token.as_object().unwrap().clone());
        let made = self.client().post("/tokens").bearer(&account.token).json(body).expect(201).await;
        let program = Program {
            token: text_of(&made["token"]),
            is_for_all: made["scope"]["all"] == true,
            allows: allows.to_vec(),
            is_of_owner: account.id == self.owner.id,
        };
        Person { program: Some(program), ..Person::new(name, account.clone(), &[]) }
    }

    /// A server that has sent a sample, raised an alert, run a command and lost its agent.
    async fn use_server(&mut self, key: &str) {
        let alarms = Alarms::of(&self.service, &self.owner, self.server_id);
        let threshold = alarms.add(Threshold::cpu(90.0)).await;
        let mut probe = alarms.probe(key).await;
        probe.cpu(99.0).await;
        self.alert_id = uuid_of(&alarms.until(threshold, "active").await["id"]);
        let path = format!("/commands/{}?wait=0", self.server_id);
        let command = self.client().post(path).bearer(&self.owner.token).json(json!({"command": "true"}));
        self.command_id = uuid_of(&command.expect(200).await["command_id"]);
        probe.agent.expect_execute().await;
        probe.agent.finish(self.command_id).await;
        let id = self.server_id;
        probe.agent.socket.close().await;
        let offline = async || {
            let server = self.client().get(format!("/servers/{id}")).bearer(&self.owner.token).expect(200).await;
            (server["status"] == "offline").then_some(())
        };
        crate::support::eventually("the agent is away", offline).await;
    }

    async fn tag(&self, tags: &[&str]) {
        let path = format!("/servers/{}", self.server_id);
        self.client().put(path).bearer(&self.owner.token).json(json!({"tags": tags})).expect(200).await;
    }

    async fn gather(&mut self) {
        let all = operator(&Right::ALL);
        let manager = [all.clone(), vec![Action::Manage]].concat();
        let nobody = Person {
            standing: Standing::Unknown,
            refusal: "not_authenticated",
            account: None,
            ..Person::new("nobody", self.owner.clone(), &[])
        };
        let mut people = vec![nobody, self.person("stranger", None, &[]).await];
        people.push(self.person("viewer", Some((To::Server, "viewer", None)), &[Action::See]).await);
        let respond = [Action::See, Action::Respond];
        people.push(self.person("responder", Some((To::Tag(TAG), "responder", None)), &respond).await);
        for (name, without) in OPERATORS {
            let rights: Vec<Right> = Right::ALL.into_iter().filter(|right| *right != without).collect();
            let may: Vec<Action> = all.iter().copied().filter(|action| *action != Action::Use(without)).collect();
            people.push(self.person(name, Some((To::Server, "operator", Some(rights))), &may).await);
        }
        people.push(self.person("operator", Some((To::All, "operator", None)), &all).await);
        people.push(self.person("manager", Some((To::Tag(TAG), "manager", None)), &manager).await);
        let owner = [manager.clone(), vec![Action::Own]].concat();
        people.push(Person { in_team: InTeam::Creator, ..Person::new("owner", self.owner.clone(), &owner) });
        let administrator = Person::new("administrator", self.administrator.clone(), &[]);
        people.push(Person { standing: Standing::Administrator, ..administrator });
        people.push(self.disabled(&manager).await);
        people.push(self.team_member().await);
        people.push(self.without_tag().await);
        self.people = people;
    }

    /// An account with this grant of the owner.
    async fn person(
        &mut self,
        name: &'static str,
        grant: Option<(To, &str, Option<Vec<Right>>)>,
        may: &[Action],
    ) -> Person {
        let account = self.service.register(&name.replace(' ', "-")).await;
        if let Some((to, role, rights)) = grant {
            let scope = match to {
                To::Server => json!({"server_id": self.server_id}),
                To::Tag(tag) => json!({"tag": tag}),
                To::All => json!({"all": true}),
            };
            let words = rights.map(|rights| rights.into_iter().map(Right::word).collect::<Vec<_>>());
            self.give(json!({"user_id": account.id}), scope, role, json!(words)).await;
        }
        Person::new(name, account, may)
    }

    async fn give(&self, subject: Value, scope: Value, role: &str, rights: Value) {
        let grant = json!({"subject": subject, "scope": scope, "role": role, "rights": rights});
        self.client().post("/grants").bearer(&self.owner.token).json(grant).expect(201).await;
    }

    /// A manager whose account is disabled.
    async fn disabled(&mut self, may: &[Action]) -> Person {
        let person = self.person("disabled", Some((To::Server, "manager", None)), may).await;
        let path = format!("/users/{}", person.account.as_ref().unwrap().id);
        self.client().put(path).bearer(&self.administrator.token).json(json!({"disabled": true})).expect(200).await;
        Person { standing: Standing::Unknown, refusal: "token_revoked", ..person }
    }

    /// A member of a team that may read logs.
    async fn team_member(&mut self) -> Person {
        let may = operator(&[Right::Logs]);
        let person = self.person("team member", None, &may).await;
        self.member_id = person.account.as_ref().unwrap().id;
        let team = self.object(Object::Team, true).await;
        self.give(json!({"team_id": team}), json!({"server_id": self.server_id}), "operator", json!(["logs"])).await;
        Person { in_team: InTeam::Member, ..person }
    }

    /// Somebody who managed the server by a tag that was removed.
    async fn without_tag(&mut self) -> Person {
        let person = self.person("by a removed tag", Some((To::Tag(FORMER_TAG), "manager", None)), &[]).await;
        let path = format!("/servers/{}", self.server_id);
        self.client().get(path).bearer(person.token().unwrap()).expect(200).await;
        self.tag(&[TAG]).await;
        person
    }

    /// Another server, on which everybody has the rights that they have on the first one, as far as these come by its tag.
    pub async fn granted_server(&self) -> Uuid {
        let body = json!({"name": "web-2", "host": "192.0.2.11", "tags": [TAG]});
        uuid_of(&self.client().post("/servers").bearer(&self.owner.token).json(body).expect(201).await["id"])
    }

    pub fn client(&self) -> &Client {
        &self.service.client
    }

    /// A name that nothing has.
    pub fn name(&mut self) -> String {
        self.names += 1;
        format!("name-{}", self.names)
    }

    /// A grant to give.
    pub fn grant(&self, scope: Value) -> Value {
        json!({"subject": {"user_id": self.spare.id}, "scope": scope, "role": "viewer"})
    }

    /// Makes a call of this person. `is_used` if it is expected to use the object up.
    pub async fn ask(&mut self, line: &Line, person: &Person, is_used: bool) -> Told {
        let path = self.path(line, is_used).await;
        let mut token = person.token().map(str::to_owned);
        if let (true, true, Some(account), None) = (line.ends_session, is_used, &person.account, &person.program) {
            token = Some(self.service.sign_in(account).await.token);
        }
        self.call(line, &path, token.as_deref()).await
    }

    /// Makes a call.
    pub async fn call(&mut self, line: &Line, path: &str, token: Option<&str>) -> Told {
        if path.contains("/ws") {
            return self.open(path, token).await;
        }
        let (method, _) = line.operation.split_once(' ').unwrap();
        let mut call = self.service.root.call(method.parse().unwrap(), path);
        if let Some(token) = token {
            call = call.bearer(token);
        }
        if let Some(body) = line.body {
            call = call.json(body(self));
        }
        if let Some(form) = line.form {
            let pairs = form(self);
            let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
            call = call.form(&pairs);
        }
        let answer = call.send().await;
        Told { status: answer.status, text: answer.text, is_socket: false }
    }

    /// The path of a call, with the ids that it names.
    pub async fn path(&mut self, line: &Line, is_used: bool) -> String {
        let (_, pattern) = line.operation.split_once(' ').unwrap();
        let object = match line.object {
            // Making one takes long, and a server that is deleted must not be the one of the table.
            Object::Server if !is_used => self.server_id,
            object => self.object(object, is_used).await,
        };
        let server_id = self.server_id.to_string();
        let is_of_server = pattern.contains("/servers/{id}") && line.object != Object::Server;
        let id = if is_of_server { server_id.clone() } else { object.to_string() };
        let values = [
            ("{server_id}", server_id.clone()),
            ("{id}", id),
            ("{event_id}", object.to_string()),
            ("{recording_id}", object.to_string()),
            ("{command_id}", self.command_id.to_string()),
            ("{container_id}", "web".to_owned()),
            ("{user_id}", self.spare.id.to_string()),
            ("{name}", "nothing".to_owned()),
        ];
        let path = values.iter().fold(pattern.to_owned(), |path, (name, value)| path.replace(name, value));
        path + &line.query.replace("$server", &server_id)
    }

    /// The status of an upgrade, and the first message of a socket that was opened.
    async fn open(&self, path: &str, token: Option<&str>) -> Told {
        let pass = token.map_or(Pass::Nothing, Pass::Header);
        let (status, text) = match Dashboard::open(self.service.address, path, pass, &[]).await {
            Err(status) => (status, String::new()),
            Ok(mut opened) if path.contains("/ws/fleet") => match opened.socket.receive().await {
                Received::Message(message) => (101, message.into_text().unwrap().to_string()),
                end => panic!("{path} ended: {end:?}"),
            },
            Ok(opened) => {
                opened.socket.close().await;
                (101, String::new())
            }
        };
        Told { status, text, is_socket: true }
    }
}

/// Operators who have all rights but one.
const OPERATORS: [(&str, Right); 4] = [
    ("operator without containers", Right::Containers),
    ("operator without commands", Right::Commands),
    ("operator without logs", Right::Logs),
    ("operator without terminal", Right::Terminal),
];
