//! install.sh with the token of an enrolment.

mod cloud_init;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ENVIRONMENT, KEY, KEY_FILE, Machine, POLICY, Shop, UNIT, assert_refused, own_program, shell};
use crate::enrolments::policies;
use crate::support::agent::FakeAgent;
use crate::support::command_line::{Launched, Outcome, run};
use crate::support::process::ServiceProcess;
use crate::support::{Account, eventually, text_of};

/// Keeps the request id while there is no key.
const REQUEST: &str = "etc/signalbox-agent/enrolment-request";

/// A shop with an account that enrols machines.
struct Scene {
    shop: Shop,
    owner: Account,
}

impl Scene {
    async fn open() -> Self {
        Self::of(Shop::open().await).await
    }

    async fn with_agent() -> Self {
        Self::of(Shop::with_agent().await).await
    }

    async fn of(shop: Shop) -> Self {
        let owner = shop.service.register("owner").await;
        Self { shop, owner }
    }

    async fn token(&self, more: Value) -> String {
        let mut body = json!({"name": "rack 4", "uses": 10});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let call = self.shop.service.client.post("/enrolments").bearer(&self.owner.token).json(body);
        text_of(&call.expect(201).await["token"])
    }

    async fn servers(&self) -> Vec<String> {
        let servers = self.shop.service.client.get("/servers").bearer(&self.owner.token).expect(200).await;
        servers.as_array().unwrap().iter().map(|server| text_of(&server["name"])).collect()
    }

    async fn enrolled(&self, machine: &Machine, arguments: &[&str]) -> Outcome {
        let outcome = machine.install(&self.shop.url(), arguments).await;
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
        outcome
    }
}

fn host_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned()
}

#[actix_web::test]
async fn an_enrolled_machine_is_a_server_with_a_key_and_the_policy() {
    let scene = Scene::open().await;
    let policy =
        "# of rack 4: \"quoted\" é\ncommands = 'on'\n\tdocker = \"off\"\nlog_paths = [\n  \"/var/log/a=b\", # and\n]\n";
    let token = scene.token(json!({"tags": ["web"], "policy": policy})).await;
    let machine = Machine::new();

    let outcome = scene.enrolled(&machine, &["--enrol", &token]).await;

    assert!(outcome.stdout.contains(&format!("note: this machine is the server {}\n", host_name())), "{outcome:?}");
    assert_eq!(scene.servers().await, [host_name()]);
    assert_eq!((machine.read(POLICY), machine.mode(POLICY)), (policy.to_owned(), 0o644));
    assert!(machine.read(UNIT).contains("Not hardened"), "the unit does not follow the policy");
    assert_eq!(machine.mode(KEY_FILE), 0o640);
    assert!(!machine.path(REQUEST).exists());
    FakeAgent::online(scene.shop.service.address, machine.read(KEY_FILE).trim()).await;
    assert!(!outcome.stdout.contains(machine.read(KEY_FILE).trim()), "the key was printed");
}

#[actix_web::test]
async fn a_second_run_enrols_nothing_and_keeps_the_key() {
    let scene = Scene::open().await;
    let token = scene.token(json!({"policy": "logs = \"on\"\n"})).await;
    let machine = Machine::new();
    scene.enrolled(&machine, &["--enrol", &token]).await;
    let before = [KEY_FILE, POLICY, ENVIRONMENT, UNIT].map(|file| machine.read(file));
    scene.shop.stock(&own_program(), "#!/bin/sh\nexit 0\n# the next version\n");

    let outcome = scene.enrolled(&machine, &["--enrol", &token]).await;

    assert!(outcome.stdout.starts_with("note: this machine has a key already, so it was not enrolled"), "{outcome:?}");
    assert_eq!([KEY_FILE, POLICY, ENVIRONMENT, UNIT].map(|file| machine.read(file)), before);
    assert!(machine.read(super::AGENT).contains("the next version"));
    assert_eq!(scene.servers().await.len(), 1);
}

#[actix_web::test]
async fn the_token_comes_from_a_file_or_the_environment_and_no_program_has_it() {
    let scene = Scene::open().await;
    let token = scene.token(json!({})).await;
    // The script runs it before it enrols.
    scene.shop.stock(&own_program(), "#!/bin/sh\n[ -z \"${SIGNALBOX_ENROLMENT_TOKEN:-}\" ]\n");
    let (by_file, by_environment) = (Machine::new(), Machine::new());
    fs::write(by_file.path("token"), format!("{token}\n")).unwrap();
    // Between the script and curl: it keeps the arguments.
    let between = TempDir::new().unwrap();
    let (curl, kept) = (between.path().join("curl"), between.path().join("kept"));
    let path = std::env::var("PATH").unwrap();
    let keeps = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >>'{}'\nPATH='{path}' exec curl \"$@\"\n", kept.display());
    fs::write(&curl, keeps).unwrap();
    fs::set_permissions(&curl, fs::Permissions::from_mode(0o755)).unwrap();

    scene.enrolled(&by_file, &["--enrol-file", by_file.path("token").to_str().unwrap(), "--name", "db-1"]).await;
    let mut command = by_environment.pasted(&scene.shop.url(), &["--name", "db-1"]);
    command.env("SIGNALBOX_ENROLMENT_TOKEN", &token).env("PATH", format!("{}:{path}", between.path().display()));
    let outcome = run(command).await;

    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    assert!(outcome.stdout.contains("the server db-1-2\n"), "{outcome:?}");
    assert_eq!(scene.servers().await, ["db-1", "db-1-2"]);
    assert_ne!(by_file.read(KEY_FILE), by_environment.read(KEY_FILE));
    let kept = fs::read_to_string(kept).unwrap();
    assert!(kept.contains("/api/v1/enrol\n") && !kept.contains(&token[..30]), "{kept}");
}

/// Where curl is missing: GNU wget does the same.
#[actix_web::test]
async fn a_machine_with_wget_alone_enrols_and_shows_the_token_to_nobody() {
    let scene = Scene::open().await;
    let token = scene.token(json!({"policy": "logs = \"on\"\n"})).await;
    let machine = Machine::new();
    let programs = TempDir::new().unwrap();
    let has = "for p in wget grep sed cat cut tr od uname mktemp sha256sum chmod rm mv mkdir rmdir tail head flock id dash; do \
               ln -s \"$(command -v $p)\" \"$1/$p\"; done";
    let mut command = shell(has);
    command.arg(programs.path());
    assert_eq!(run(command).await.code, Some(0));
    let script = scene.shop.service.root.get("/install.sh").expect_answer(200).await.text;
    fs::write(programs.path().join("install.sh"), script).unwrap();
    let mut command = std::process::Command::new(programs.path().join("dash"));
    command.env_clear().env("PATH", programs.path()).env("no_proxy", "*").env("SIGNALBOX_ROOT", machine.root.path());
    command.env("SIGNALBOX_ENROLMENT_TOKEN", &token).arg(programs.path().join("install.sh"));

    let outcome = run(command).await;

    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    assert_eq!((machine.read(POLICY), scene.servers().await.len()), ("logs = \"on\"\n".to_owned(), 1));
}

#[actix_web::test]
async fn a_policy_in_place_stays_and_the_script_says_so() {
    let scene = Scene::open().await;
    let token = scene.token(json!({"policy": "commands = \"on\"\n"})).await;
    let machine = Machine::new();
    fs::create_dir_all(machine.path(POLICY).parent().unwrap()).unwrap();
    fs::write(machine.path(POLICY), "commands = \"off\"\n").unwrap();

    let outcome = scene.enrolled(&machine, &["--enrol", &token]).await;

    assert_eq!(machine.read(POLICY), "commands = \"off\"\n");
    assert!(
        outcome.stdout.contains("note: the policy in /etc/signalbox-agent/policy.toml stays as it was"),
        "{outcome:?}"
    );
}

#[actix_web::test]
async fn an_option_changes_its_line_of_the_enrolments_policy() {
    let scene = Scene::open().await;
    let token = scene.token(json!({"policy": "commands = \"on\"\nlogs = \"on\"\n"})).await;
    let machine = Machine::new();

    scene.enrolled(&machine, &["--enrol", &token, "--commands", "off", "--terminal", "off"]).await;

    assert_eq!(machine.read(POLICY), "commands = \"off\"\nlogs = \"on\"\nterminal = \"off\"\n");
}

/// What the script would read in another way than the agent could get past an option. The service keeps no such policy, unless
/// somebody has changed it.
#[actix_web::test]
async fn the_script_takes_and_refuses_the_policies_that_the_service_does() {
    let scene = Scene::with_agent().await;
    let policies = policies();
    let storage = scene.shop.service.storage();
    let token = scene.token(json!({"policy": "logs = \"on\"\n", "uses": 100})).await;
    let install = async |policy: &Value| {
        let policy = text_of(policy).replace('\'', "''");
        storage.execute(&[&format!("UPDATE enrolments SET policy = '{policy}'")]).await;
        let machine = Machine::new();
        let outcome = machine.install(&scene.shop.url(), &["--enrol", &token]).await;
        (machine, outcome)
    };

    for policy in policies["accepted"].as_array().unwrap() {
        let (machine, outcome) = install(policy).await;
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{policy}: {outcome:?}");
        assert_eq!(machine.read(POLICY), text_of(policy));
    }
    for case in policies["refused"].as_array().unwrap() {
        let (machine, outcome) = install(&case["policy"]).await;
        assert_refused(&outcome, "the service sent a policy ");
        assert!(!machine.path(POLICY).exists() && !machine.path(super::AGENT).exists(), "{case}: it was installed");
    }
}

/// The script takes the first line for the whole list; the agent, asked before anything is written, does not.
#[actix_web::test]
async fn half_a_list_of_the_enrolments_policy_is_refused() {
    let scene = Scene::with_agent().await;
    let token = scene.token(json!({"policy": "commands = [ # ]\n  \"ada\"\n]\n"})).await;
    let (whole, half) = (Machine::new(), Machine::new());

    scene.enrolled(&whole, &["--enrol", &token]).await;
    let outcome = half.install(&scene.shop.url(), &["--enrol", &token, "--commands", "off"]).await;

    assert!(whole.read(UNIT).contains("Not hardened"), "the unit does not follow the policy");
    assert_refused(&outcome, "the agent refuses the policy: policy file /etc/signalbox-agent/policy.toml: line 2: ");
    assert!(!half.path(POLICY).exists() && !half.path(super::AGENT).exists(), "it was installed");
}

#[actix_web::test]
async fn a_server_named_signed_asks_for_no_signatures() {
    let scene = Scene::open().await;
    let token = scene.token(json!({"policy": "logs = \"on\"\n"})).await;
    let (named, overruled) = (Machine::new(), Machine::new());

    scene.enrolled(&named, &["--enrol", &token, "--name", "signed"]).await;
    scene.enrolled(&overruled, &["--enrol", &token, "--commands", "signed", "--commands", "off"]).await;

    assert_eq!(named.read(POLICY), "logs = \"on\"\n");
    assert_eq!(overruled.read(POLICY), "logs = \"on\"\ncommands = \"off\"\n");
}

#[actix_web::test]
async fn a_refusal_says_why_and_leaves_nothing() {
    let scene = Scene::open().await;
    let used_up = scene.token(json!({"uses": 1})).await;
    scene.enrolled(&Machine::new(), &["--enrol", &used_up]).await;
    let elsewhere = scene.token(json!({"networks": ["192.0.2.0/24"]})).await;
    let unknown = format!("sbe_0123456789abcdef_{}", "A".repeat(43));

    for (token, named) in [
        (&used_up, "status 403): This enrolment has made all the servers"),
        (&elsewhere, "status 401): This token is for other networks; you come from 127.0.0.1"),
        (&unknown, "status 401): This token was revoked"),
    ] {
        let machine = Machine::new();
        let outcome = machine.install(&scene.shop.url(), &["--enrol", token]).await;

        assert_refused(&outcome, named);
        assert!(!outcome.stderr.contains(&token[..30]), "{outcome:?}");
        assert_eq!(machine.files(), []);
    }
    assert_eq!(scene.servers().await.len(), 1);
}

#[actix_web::test]
async fn what_has_not_its_shape_is_refused_before_anything_is_asked() {
    let scene = Scene::open().await;
    let token = scene.token(json!({})).await;
    let machine = Machine::new();
    let cases: &[(&[&str], &str)] = &[
        (&["--enrol", "secret"], "no token of an enrolment"),
        (&["--enrol", KEY], "no token of an enrolment"),
        (&["--enrol-file", "/nowhere"], "/nowhere"),
        (&["--enrol-file", "/etc/hostname"], "no token of an enrolment"),
        (&["--enrol"], "--enrol needs a value"),
        (&["--enrol", &token, "--key", KEY], "use one of them"),
        (&["--enrol", &token, "--name", "web 1"], "--name takes"),
        (&["--enrol", &token, "--name", "-web"], "--name takes"),
        (&["--key", KEY, "--name", "web-1"], "--name is for an enrolment"),
    ];

    for (arguments, named) in cases {
        let outcome = machine.install(&scene.shop.url(), arguments).await;

        assert_refused(&outcome, named);
        assert_eq!(machine.files(), [], "{arguments:?}");
    }
    assert_eq!(scene.servers().await, [] as [&str; 0]);
}

/// The answer is lost after the server was made.
#[actix_web::test]
async fn a_run_after_a_lost_answer_makes_no_second_server() {
    let scene = Scene::open().await;
    let token = scene.token(json!({"uses": 1})).await;
    let machine = Machine::new();
    let id = "0123456789abcdef0123456789abcdef";
    let body = json!({"hostname": "web", "request_id": id});
    let lost = scene.shop.service.client.post("/enrol").bearer(&token).json(body).expect(201).await;
    fs::create_dir_all(machine.path(REQUEST).parent().unwrap()).unwrap();
    fs::write(machine.path(REQUEST), format!("{id}\n")).unwrap();

    scene.enrolled(&machine, &["--enrol", &token]).await;

    assert_eq!(scene.servers().await, ["web"]);
    assert_ne!(machine.read(KEY_FILE).trim(), text_of(&lost["key"]));
    assert!(!machine.path(REQUEST).exists());
    FakeAgent::online(scene.shop.service.address, machine.read(KEY_FILE).trim()).await;
}

/// The real agent from the real service.
#[actix_web::test]
async fn an_enrolled_agent_connects() {
    let data_dir = TempDir::new().unwrap();
    let service = ServiceProcess::start(data_dir.path()).await;
    let prepared = service.prepare().await;
    let body = json!({"name": "rack 4", "uses": 1, "policy": "docker = \"off\"\n"});
    let made = service.client.post("/enrolments").bearer(&prepared.token).json(body).expect(201).await;
    let machine = Machine::new();

    let url = format!("http://{}", service.address);
    machine.installed(&url, &["--enrol", &text_of(&made["token"]), "--name", "enrolled", "--interval", "1"]).await;

    let mut command = std::process::Command::new(machine.path(super::AGENT));
    command.env_clear().env("STATE_DIRECTORY", machine.path("state"));
    command.arg("--key-file").arg(machine.path(KEY_FILE)).arg("--policy").arg(machine.path(POLICY));
    command.envs(machine.read(ENVIRONMENT).lines().map(|line| line.split_once('=').unwrap()));
    let _agent = Launched::start(command);
    eventually("the agent is online", async || {
        let servers = service.read(&prepared, "/servers?status=online").await;
        servers.as_array().unwrap().iter().any(|server| server["name"] == "enrolled").then_some(())
    })
    .await;
}

/// The role of packaging/ansible, on this machine.
#[actix_web::test]
async fn the_role_of_ansible_enrols_a_machine_once() {
    let scene = Scene::open().await;
    let token = scene.token(json!({})).await;
    let machine = Machine::new();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let playbook = machine.path("playbook.yaml");
    let variables = json!({
        "signalbox_agent_url": scene.shop.url(), "signalbox_agent_enrolment_token": token, "signalbox_agent_name": "db-1",
        "signalbox_agent_options": ["--logs", "on"], "signalbox_agent_root": machine.path("root"),
    });
    let play =
        json!([{"hosts": "all", "gather_facts": false, "roles": [{"role": "signalbox_agent", "vars": variables}]}]);
    fs::write(&playbook, play.to_string()).unwrap();
    let play = async || {
        let mut command = std::process::Command::new(root.join("target/test-tools/bin/ansible-playbook"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", machine.root.path());
        command
            .env("ANSIBLE_ROLES_PATH", root.join("packaging/ansible/roles"))
            .env("no_proxy", "*")
            .env("LC_ALL", "C.UTF-8");
        command
            .args(["-c", "local", "-i", "localhost,", "-e", "ansible_python_interpreter={{ ansible_playbook_python }}"])
            .arg(&playbook);
        run(command).await
    };

    let (first, second) = (play().await, play().await);

    assert_eq!((first.code, second.code), (Some(0), Some(0)), "{first:?} {second:?}");
    assert!(first.stdout.contains("changed=1 ") && second.stdout.contains("changed=0 "), "{first:?} {second:?}");
    assert_eq!(scene.servers().await, ["db-1"]);
    assert!(!format!("{first:?}{second:?}").contains(&token[..30]), "the token was printed");
    let key = machine.path("root").join(KEY_FILE);
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o640);
    FakeAgent::online(scene.shop.service.address, fs::read_to_string(key).unwrap().trim()).await;
}
