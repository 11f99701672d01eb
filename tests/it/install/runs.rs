//! Installing, upgrading and removing, with the script as it is served.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::{AGENT, ENVIRONMENT, KEY, KEY_FILE, Machine, OTHER_KEY, POLICY, Shop, TRIVIAL, UNIT, own_program};
use crate::real_agent::agent_program;
use crate::support::command_line::{Launched, run};
use crate::support::eventually;
use crate::support::process::ServiceProcess;

/// The policy of a new installation.
const FRESH_POLICY: &str = r#"# What the service may ask of this machine. The agent reads it at its start and cannot change it.
processes = "on"
commands = "off"
docker = "read"
logs = "off"
log_paths = []
terminal = "off"
"#;

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

/// The real agent from the real service, as one archive has both.
#[actix_web::test]
async fn an_installed_agent_connects() {
    let data_dir = TempDir::new().unwrap();
    let service = ServiceProcess::start(data_dir.path()).await;
    let prepared = service.prepare().await;
    let url = format!("http://{}", service.address);
    let machine = Machine::new();

    machine.installed(&url, &["--key", &prepared.key, "--docker", "off", "--interval", "1"]).await;

    assert!(fs::read(machine.path(AGENT)).unwrap() == fs::read(agent_program()).unwrap(), "it is another program");
    // As the unit starts it: by its arguments below the root, with the environment of its file.
    let unit = machine.read(UNIT);
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/")).unwrap();
    let mut words = start.split(' ');
    let mut command = std::process::Command::new(machine.path(words.next().unwrap()));
    command.env_clear().env("STATE_DIRECTORY", machine.path("state"));
    for word in words {
        match word.strip_prefix('/') {
            Some(file) => command.arg(machine.path(file)),
            None => command.arg(word),
        };
    }
    command.envs(machine.read(ENVIRONMENT).lines().map(|line| line.split_once('=').unwrap()));
    let _agent = Launched::start(command);
    let path = format!("/servers/{}", prepared.server_id);
    let server = eventually("the agent is online", async || {
        Some(service.read(&prepared, &path).await).filter(|server| server["status"] == "online")
    })
    .await;
    let capabilities = server["agent"]["capabilities"].as_array().unwrap();
    assert!(!capabilities.iter().any(|capability| capability == "docker"), "the policy was not read: {server}");
}

#[actix_web::test]
async fn a_new_installation_allows_what_an_agent_allows_by_itself() {
    let shop = Shop::open().await;
    let machine = Machine::new();

    machine.installed(&shop.url(), &["--key", KEY]).await;

    assert_eq!(machine.read(POLICY), FRESH_POLICY);
    assert_eq!(machine.read(ENVIRONMENT), format!("SIGNALBOX_AGENT_URL={}\n", shop.url()));
    assert_eq!(machine.read(KEY_FILE), format!("{KEY}\n"));
    assert_eq!(machine.read(AGENT), TRIVIAL);
    let modes = [AGENT, KEY_FILE, POLICY, ENVIRONMENT, UNIT].map(|file| machine.mode(file));
    assert_eq!(modes, [0o755, 0o640, 0o644, 0o600, 0o644]);
    assert_eq!(machine.files().len(), modes.len(), "something else was left: {:?}", machine.files());
}

#[actix_web::test]
async fn every_option_reaches_its_file() {
    let shop = Shop::open().await;
    let machine = Machine::new();
    let ca_file = machine.path("some.pem");
    fs::write(&ca_file, CERTIFICATE).unwrap();

    let arguments: [&[&str]; 3] = [
        &["--key", KEY, "--commands", "on", "--docker=control", "--logs", "on", "--terminal", "on"],
        &["--log-path", "/var/log/nginx", "--log-path", "/srv/a-b_c.log", "--processes", "off", "--interval", "0.5"],
        &["--ca-file", ca_file.to_str().unwrap(), "--url", "http://127.0.0.1:1/"],
    ];
    // The address differs from the script's, so the program must come from there.
    let refused = machine.install(&shop.url(), &arguments.concat()).await;
    assert!(refused.stderr.contains("cannot download http://127.0.0.1:1/install/"), "{refused:?}");
    let url = format!("{}/", shop.url().replace("127.0.0.1", "localhost"));
    let arguments: Vec<&str> =
        arguments.concat().into_iter().map(|word| if word == "http://127.0.0.1:1/" { &url } else { word }).collect();
    machine.installed(&shop.url(), &arguments).await;

    let policy = r#"processes = "off"
commands = "on"
docker = "control"
logs = "on"
log_paths = ["/var/log/nginx", "/srv/a-b_c.log"]
terminal = "on"
"#;
    assert_eq!(machine.read(POLICY).split_once('\n').unwrap().1, policy);
    let environment = format!(
        "SIGNALBOX_AGENT_URL={}\nSIGNALBOX_AGENT_INTERVAL=0.5\nSIGNALBOX_AGENT_CA_FILE=/etc/signalbox-agent/ca.pem\n",
        url.trim_end_matches('/')
    );
    assert_eq!(machine.read(ENVIRONMENT), environment);
    assert_eq!(machine.read("etc/signalbox-agent/ca.pem"), CERTIFICATE);
}

#[actix_web::test]
async fn an_upgrade_keeps_key_policy_and_settings() {
    let shop = Shop::open().await;
    let machine = Machine::new();
    machine.installed(&shop.url(), &["--key", KEY, "--commands", "on", "--interval", "7"]).await;
    let before: Vec<String> = [KEY_FILE, POLICY, ENVIRONMENT, UNIT].map(|file| machine.read(file)).to_vec();

    shop.stock(&own_program(), "#!/bin/sh\nexit 0\n# the next version\n");
    machine.installed(&shop.url(), &[]).await;

    assert_eq!(machine.read(AGENT), "#!/bin/sh\nexit 0\n# the next version\n");
    let after: Vec<String> = [KEY_FILE, POLICY, ENVIRONMENT, UNIT].map(|file| machine.read(file)).to_vec();
    assert_eq!(after, before);
}

#[actix_web::test]
async fn an_upgrade_closes_settings_that_others_could_read_and_keeps_a_proxys_password() {
    let shop = Shop::open().await;
    let machine = Machine::new();
    machine.installed(&shop.url(), &["--key", KEY]).await;
    let environment = format!("{}HTTPS_PROXY=http://ada:secret@proxy:3128\n", machine.read(ENVIRONMENT));
    fs::write(machine.path(ENVIRONMENT), &environment).unwrap();
    fs::set_permissions(machine.path(ENVIRONMENT), fs::Permissions::from_mode(0o644)).unwrap();

    machine.installed(&shop.url(), &[]).await;

    assert_eq!((machine.read(ENVIRONMENT), machine.mode(ENVIRONMENT)), (environment, 0o600));
}

#[actix_web::test]
async fn with_commands_or_a_terminal_containers_are_off_unless_they_are_asked_for() {
    let shop = Shop::open().await;

    for option in ["--commands", "--terminal"] {
        for (asked, allowed, note) in [
            ([].as_slice(), "docker = \"off\"\n", "note: containers are not shown"),
            (&["--docker", "off"], "docker = \"off\"\n", "the agent's files are below"),
            (
                &["--docker", "read"],
                "docker = \"read\"\n",
                "note: anyone who can use the Docker socket can become root",
            ),
        ] {
            let machine = Machine::new();

            let arguments = [&["--key", KEY, option, "on"], asked].concat();
            let outcome = machine.install(&shop.url(), &arguments).await;

            assert_eq!(outcome.code, Some(0), "{outcome:?}");
            assert!(machine.read(POLICY).contains(allowed), "{option} {asked:?}: {}", machine.read(POLICY));
            assert!(outcome.stdout.starts_with(note), "{option} {asked:?}: {outcome:?}");
        }
    }
}

#[actix_web::test]
async fn a_policy_in_place_keeps_its_containers_and_says_what_commands_make_of_them() {
    let shop = Shop::open().await;
    let machine = Machine::new();
    machine.installed(&shop.url(), &["--key", KEY]).await;

    let outcome = machine.install(&shop.url(), &["--commands", "on"]).await;

    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(machine.read(POLICY).contains("docker = \"read\"\n"), "{}", machine.read(POLICY));
    assert!(outcome.stdout.starts_with("note: anyone who can use the Docker socket"), "{outcome:?}");
}

#[actix_web::test]
async fn an_option_changes_its_own_line_and_no_other() {
    let shop = Shop::open().await;
    let machine = Machine::new();
    machine.installed(&shop.url(), &["--key", KEY]).await;
    // As written by hand: without an end of the last line.
    fs::write(machine.path(POLICY), "# ours\ndocker = 'off' # for now\n\nlogs=\"on\"\nlog_paths = [\"/a b\"]").unwrap();
    fs::write(machine.path(ENVIRONMENT), format!("SIGNALBOX_AGENT_URL={}\nSIGNALBOX_AGENT_LOG=debug", shop.url()))
        .unwrap();

    machine.installed(&shop.url(), &["--logs", "off", "--terminal", "on", "--interval", "9"]).await;

    let policy = "# ours\ndocker = 'off' # for now\n\nlogs = \"off\"\nlog_paths = [\"/a b\"]\nterminal = \"on\"\n";
    assert_eq!(machine.read(POLICY), policy);
    let environment =
        format!("SIGNALBOX_AGENT_URL={}\nSIGNALBOX_AGENT_LOG=debug\nSIGNALBOX_AGENT_INTERVAL=9\n", shop.url());
    assert_eq!(machine.read(ENVIRONMENT), environment);
}

#[actix_web::test]
async fn a_list_over_several_lines_is_left_to_its_author() {
    let shop = Shop::open().await;
    let machine = Machine::new();
    machine.installed(&shop.url(), &["--key", KEY]).await;
    fs::write(machine.path(POLICY), "log_paths = [\n  \"/srv\",\n]\n").unwrap();
    let before = machine.files();

    let outcome = machine.install(&shop.url(), &["--log-path", "/var/log"]).await;

    super::assert_refused(&outcome, "several lines");
    assert!(machine.files() == before, "something was changed");
}

#[actix_web::test]
async fn the_key_comes_from_a_file_or_the_environment_too() {
    let shop = Shop::open().await;
    let machine = Machine::new();
    fs::write(machine.path("given"), format!("{OTHER_KEY}\n")).unwrap();

    machine.installed(&shop.url(), &["--key-file", machine.path("given").to_str().unwrap()]).await;
    assert_eq!(machine.read(KEY_FILE), format!("{OTHER_KEY}\n"));
    let mut command = machine.pasted(&shop.url(), &[]);
    command.env("SIGNALBOX_AGENT_KEY", KEY);

    assert_eq!(run(command).await.code, Some(0));
    assert_eq!(machine.read(KEY_FILE), format!("{KEY}\n"));
    assert_eq!(machine.mode(KEY_FILE), 0o640);
}

#[actix_web::test]
async fn no_program_that_the_script_runs_has_the_key() {
    let shop = Shop::open().await;
    // The script runs it before it installs it.
    shop.stock(&own_program(), "#!/bin/sh\n[ -z \"${SIGNALBOX_AGENT_KEY:-}\" ]\n");

    for arguments in [[].as_slice(), &["--key", OTHER_KEY]] {
        let machine = Machine::new();
        let mut command = machine.pasted(&shop.url(), arguments);
        command.env("SIGNALBOX_AGENT_KEY", KEY);
        let outcome = run(command).await;

        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    }
}

/// A key and the authorities that vouch for its service belong together.
#[actix_web::test]
async fn a_key_goes_to_no_other_service_than_its_own() {
    let (shop, other) = (Shop::open().await, Shop::open().await);
    let machine = Machine::new();
    fs::write(machine.path("some.pem"), CERTIFICATE).unwrap();
    let ca_file = machine.path("some.pem");
    machine.installed(&shop.url(), &["--key", KEY, "--ca-file", ca_file.to_str().unwrap()]).await;
    let before = machine.read(ENVIRONMENT);
    assert!(before.contains("SIGNALBOX_AGENT_CA_FILE"), "{before}");

    machine.installed(&other.url(), &[]).await;
    assert_eq!(machine.read(ENVIRONMENT), before);

    // Its own authorities are for the way to it, and no agent that stays elsewhere gets them.
    fs::write(machine.path("other.pem"), CERTIFICATE.replace("AAAA", "BBBB")).unwrap();
    machine.installed(&other.url(), &["--ca-file", machine.path("other.pem").to_str().unwrap()]).await;
    assert_eq!(machine.read(ENVIRONMENT), before);
    assert_eq!(machine.read("etc/signalbox-agent/ca.pem"), CERTIFICATE);

    machine.installed(&other.url(), &["--key", OTHER_KEY]).await;
    assert_eq!(machine.read(ENVIRONMENT), format!("SIGNALBOX_AGENT_URL={}\n", other.url()));
}

#[actix_web::test]
async fn removing_leaves_nothing_and_may_be_repeated() {
    let shop = Shop::open().await;
    let machine = Machine::new();
    machine.installed(&shop.url(), &["--key", KEY]).await;
    fs::create_dir_all(machine.path("var/lib/signalbox-agent")).unwrap();
    fs::write(machine.path("var/lib/signalbox-agent/samples"), "some").unwrap();
    // An owner's changes to the unit, and the remains of a run that was killed.
    fs::create_dir_all(machine.path(&format!("{UNIT}.d"))).unwrap();
    fs::write(machine.path(&format!("{UNIT}.d/override.conf")), "[Service]").unwrap();
    fs::create_dir_all(machine.path("usr/local/bin/.signalbox-agent.Ab12Cd")).unwrap();
    fs::write(machine.path("usr/local/bin/.signalbox-agent.Ab12Cd/key"), KEY).unwrap();
    fs::write(machine.path(&format!("{KEY_FILE}.new")), KEY).unwrap();

    for _ in 0..2 {
        machine.installed(&shop.url(), &["--uninstall"]).await;

        assert_eq!(machine.files(), []);
    }
    assert!(!machine.path("etc/signalbox-agent").exists());
}

#[actix_web::test]
async fn a_users_processes_are_found() {
    let shop = Shop::open().await;
    // All of the script except the line that would run it, and then itself.
    let mut command = super::shell(
        r#"eval "$(curl -fsSL "$1/install.sh" | sed '$d')"; processes_of "$(id -u)" | grep -x "$$" && processes_of 4294967294"#,
    );
    command.arg(shop.url());
    let outcome = run(command).await;

    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    assert_eq!(outcome.stdout.lines().count(), 1, "{outcome:?}");
}

#[actix_web::test]
async fn wget_does_where_there_is_no_curl() {
    let shop = Shop::open().await;
    let machine = Machine::new();
    let tools = TempDir::new().unwrap();
    for tool in [
        "cat",
        "chmod",
        "cut",
        "dash",
        "grep",
        "id",
        "mkdir",
        "mktemp",
        "mv",
        "rm",
        "sed",
        "sh",
        "sha256sum",
        "tail",
        "uname",
        "wget",
    ] {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|path| path.join(tool))
            .find(|path| path.exists());
        symlink(found.unwrap_or_else(|| panic!("{tool} is missing")), tools.path().join(tool)).unwrap();
    }
    let mut command = super::shell(r#"wget -q -O - "$1/install.sh" | { shift; dash -s -- "$@"; }"#);
    command.env("PATH", tools.path()).env("SIGNALBOX_ROOT", machine.root.path()).args([
        shop.url().as_str(),
        "--key",
        KEY,
    ]);

    let outcome = run(command).await;

    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    assert_eq!(machine.read(AGENT), TRIVIAL);

    fs::remove_file(shop.programs.path().join(own_program())).unwrap();
    let mut command = super::shell(r#"wget -q -O - "$1/install.sh" | { shift; dash -s -- "$@"; }"#);
    command.env("PATH", tools.path()).env("SIGNALBOX_ROOT", machine.root.path()).arg(shop.url());
    super::assert_refused(&run(command).await, "the service has no agent for");
}
