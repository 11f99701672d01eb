//! Many wrong passwords, and users who sign in.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use signalbox::config::Config;
use tokio::task::JoinSet;

use super::{FORWARDED_FOR, HONEST, HONEST_BEHIND, STRANGER, STRANGER_BEHIND};
use crate::support::{Client, PASSWORD, TestService, behind_a_proxy, eventually, registration};

const GUESSERS: usize = 100;

/// Expensive enough for a queue.
const ITERATIONS: u32 = 100_000;

/// A user who signs in.
#[derive(Clone)]
struct Visitor {
    client: Client,
    /// As the proxy says that is between.
    address: Option<&'static str>,
}

impl Visitor {
    fn from(service: &TestService, from: Ipv4Addr) -> Self {
        Self { client: Client::from_address(format!("http://{}/api/v1", service.address), from), address: None }
    }

    /// Through the proxy that all use.
    fn behind(service: &TestService, address: &'static str) -> Self {
        Self { address: Some(address), ..Self::from(service, HONEST) }
    }

    /// Signs in. Returns the status.
    async fn sign_in(&self, name: &str, password: &str) -> u16 {
        let call = self.client.post("/auth/login").form(&[("username", name), ("password", password)]);
        let call = match self.address {
            Some(address) => call.header(FORWARDED_FOR, address),
            None => call,
        };
        call.send().await.status
    }
}

/// Whose passwords are guessed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Alice,
    /// Half of them try alice's, half of them another name each time.
    Anybody,
}

/// Guesses passwords until it is dropped, this many at a time, each on a new connection.
struct Guessing {
    _tasks: JoinSet<()>,
    answered: Arc<AtomicUsize>,
}

impl Guessing {
    async fn start(visitor: &Visitor, guessers: usize) -> Self {
        Self::start_at(Target::Anybody, visitor, guessers).await
    }

    async fn start_at(target: Target, visitor: &Visitor, guessers: usize) -> Self {
        let (mut tasks, answered) = (JoinSet::new(), Arc::new(AtomicUsize::new(0)));
        for guesser in 0..guessers {
            let (visitor, answered) = (visitor.clone(), answered.clone());
            tasks.spawn(async move {
                for attempt in 0.. {
                    let is_alice = target == Target::Alice || guesser % 2 == 0;
                    let name = if is_alice { "alice".to_owned() } else { format!("nobody-{guesser}-{attempt}") };
                    let status = visitor.sign_in(&name, &format!("a wrong password {guesser}-{attempt}")).await;
                    assert!([401, 503].contains(&status), "a wrong password gives {status}");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let guessing = Self { _tasks: tasks, answered };
        eventually("the guessers are at it", || async { (guessing.answered() > 5).then_some(()) }).await;
        guessing
    }

    fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }
}

async fn service() -> TestService {
    service_with(|_| {}).await
}

async fn service_with(adjust: impl FnOnce(&mut Config)) -> TestService {
    let service = TestService::start_with(|config| {
        config.password_iterations = ITERATIONS;
        adjust(config);
    })
    .await;
    for name in ["alice", "bob"] {
        service.register(name).await;
    }
    service
}

#[actix_web::test]
async fn wrong_passwords_of_one_address_keep_nobody_from_signing_in() {
    let service = service().await;
    let guessing = Guessing::start(&Visitor::from(&service, STRANGER), GUESSERS).await;
    let honest = Visitor::from(&service, HONEST);

    for name in ["bob", "alice", "bob", "alice", "bob"] {
        let before = guessing.answered();

        assert_eq!(honest.sign_in(name, PASSWORD).await, 200, "{name}");

        // Each waits for the check that runs and one turn of another, not for all that came before.
        let overtaken = guessing.answered() - before;
        assert!(overtaken < GUESSERS / 2, "{overtaken} wrong passwords came before {name}'s");
    }
    let neighbour = Visitor::from(&service, STRANGER);
    for name in ["bob", "alice"] {
        let before = guessing.answered();
        assert_eq!(neighbour.sign_in(name, PASSWORD).await, 200, "{name}, a neighbour of the guessers");
        let overtaken = guessing.answered() - before;
        assert!(overtaken < GUESSERS / 4, "{overtaken} wrong passwords came before {name}'s");
    }
}

/// The hardest case: the same address, the same account, and connections that distinguish nobody.
#[actix_web::test]
async fn wrong_passwords_for_an_account_do_not_keep_its_owner_out_at_the_same_address() {
    let service = service().await;
    let owner = Visitor::from(&service, HONEST);
    let guessing = Guessing::start_at(Target::Alice, &owner, GUESSERS).await;

    for _ in 0..3 {
        let (before, began) = (guessing.answered(), Instant::now());

        assert_eq!(owner.sign_in("alice", PASSWORD).await, 200);

        let (overtaken, took) = (guessing.answered() - before, began.elapsed());
        eprintln!("{took:?}, {overtaken} wrong passwords before it");
        assert!(overtaken < GUESSERS / 4, "{overtaken} wrong passwords came before the right one");
    }
    let before = guessing.answered();
    owner.client.post("/auth/register").json(registration("carol")).expect(201).await;
    let overtaken = guessing.answered() - before;
    assert!(overtaken < GUESSERS / 4, "{overtaken} wrong passwords came before somebody new");
}

#[actix_web::test]
async fn behind_a_proxy_it_is_who_asked_it_that_counts() {
    let service = service_with(behind_a_proxy).await;
    let guessing = Guessing::start(&Visitor::behind(&service, STRANGER_BEHIND), GUESSERS).await;
    let honest = Visitor::behind(&service, HONEST_BEHIND);

    for name in ["bob", "alice", "bob"] {
        let before = guessing.answered();

        assert_eq!(honest.sign_in(name, PASSWORD).await, 200, "{name}");

        let overtaken = guessing.answered() - before;
        assert!(overtaken < GUESSERS / 2, "{overtaken} wrong passwords came before {name}'s");
    }
}

#[actix_web::test]
async fn wrong_passwords_from_many_addresses_keep_nobody_from_signing_in() {
    let service = service().await;
    let mut guessing = Vec::new();
    for last in 100..104 {
        guessing.push(Guessing::start(&Visitor::from(&service, Ipv4Addr::new(127, 0, 0, last)), GUESSERS / 4).await);
    }
    let honest = Visitor::from(&service, HONEST);

    for name in ["bob", "alice"] {
        assert_eq!(honest.sign_in(name, PASSWORD).await, 200, "{name}");
    }
    let wrong = honest.sign_in("bob", "a wrong password").await;

    assert_eq!(wrong, 401);
}

#[actix_web::test]
async fn registrations_and_changes_of_passwords_are_not_kept_waiting_either() {
    let service = service().await;
    let _guessing = Guessing::start(&Visitor::from(&service, STRANGER), GUESSERS).await;

    let carol = service.register("carol").await;
    let change = serde_json::json!({"current_password": PASSWORD, "new_password": "another good one"});
    service.client.post("/auth/change-password").bearer(&carol.token).json(change).expect(200).await;

    assert_eq!(Visitor::from(&service, HONEST).sign_in("carol", "another good one").await, 200);
}
