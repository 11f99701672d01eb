//! Signatures with the keys of ssh-keygen and of ssh-agent, for real agents that ask for them.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::keygen::Keygen;
use crate::ssh_agent::{SecurityKey, SshAgent};
use crate::support::{Agent, Outcome, Running, Site};
use crate::terminal::Terminal;

/// A service, the people who may sign, and the files of their servers.
pub struct Scene {
    pub site: Site,
    pub keygen: Keygen,
    files: TempDir,
}

impl Scene {
    pub async fn start() -> Self {
        let files = TempDir::new().unwrap();
        // The agent is another user, who may read the owner's files.
        fs::set_permissions(&files, Permissions::from_mode(0o755)).unwrap();
        Self { site: Site::start().await, keygen: Keygen::new(), files }
    }

    /// A server that asks for signatures of these people, each a name and a public key. Its policy calls it `called`.
    pub async fn server(&self, name: &str, called: &str, signers: &[(&str, &str)], policy: &str) -> Agent {
        let lines: String = signers.iter().map(|(person, key)| format!("{person} {key}\n")).collect();
        let path = |file: String| self.files.path().join(file).display().to_string();
        let (signers, policy_file) = (path(format!("{name}.signers")), path(format!("{name}.toml")));
        fs::write(&signers, lines).unwrap();
        let demands = "commands = \"signed\"\nterminal = \"signed\"\ndocker = \"signed\"";
        let text = format!("{demands}\nname = \"{called}\"\nsigners = \"{signers}\"\n{policy}");
        fs::write(&policy_file, text).unwrap();
        self.site.agent(name, &["production"], &["--policy", &policy_file]).await
    }

    pub fn key(&self, name: &str) -> String {
        self.keygen.path(name).display().to_string()
    }

    /// What was signed, as the audit log has it: payloads, and the first signature of each.
    async fn kept(&self) -> Vec<(String, String)> {
        let log = self.site.get("/audit?limit=500").await;
        let of_entry = |entry: &Value| {
            let signed = &entry["detail"]["signed"];
            let payload = BASE64_STANDARD.decode(signed["payload"].as_str()?).unwrap();
            let signature = signed["signatures"][0]["signature"].as_str().unwrap().to_owned();
            Some((String::from_utf8(payload).unwrap(), signature))
        };
        let mut kept: Vec<(String, String)> = log.as_array().unwrap().iter().filter_map(of_entry).collect();
        kept.dedup();
        kept
    }
}

/// Agents that have just been installed refuse what began before they did.
fn from_now<'a>(call: &[&'a str]) -> Vec<&'a str> {
    let place = call.iter().rposition(|word| *word == "--sign").unwrap();
    [&call[..place], &["--clock-skew", "0s"], &call[place..]].concat()
}

#[track_caller]
pub fn assert_ran(outcome: &Outcome, stdout: &str) {
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), stdout), "{outcome:?}");
}

#[tokio::test]
async fn every_kind_of_key_signs_what_openssh_verifies_and_agents_run() {
    let scene = Scene::start().await;
    let kinds =
        [("ed25519", ""), ("ecdsa", "256"), ("ecdsa", "384"), ("ecdsa", "521"), ("rsa", "2048"), ("rsa", "3072")];
    let named = kinds.map(|(kind, bits)| (format!("{kind}{bits}"), kind, bits));
    let lines = named.clone().map(|(name, kind, bits)| scene.keygen.generate(&name, kind, bits));
    let signers: Vec<(&str, &str)> = lines.iter().map(|line| ("ada", line.as_str())).collect();
    let _agent = scene.server("web-1", "web-1", &signers, "").await;

    for ((name, ..), line) in named.iter().zip(&lines) {
        let outcome =
            scene.site.run(&from_now(&["exec", "--sign", &scene.key(name), "web-1", "--", "echo", name, "a  b"])).await;

        assert_ran(&outcome, &format!("{name} a  b\n"));
        let fingerprint = scene.keygen.fingerprint(line);
        let shown = format!(
            "Signing:\n  servers    web-1\n  command    echo {name} 'a  b'\n  timeout    60 s\n  valid      from "
        );
        assert!(outcome.stderr.starts_with(&shown), "{outcome:?}");
        assert!(outcome.stderr.ends_with(&format!("  key        {fingerprint} test\n")), "{outcome:?}");
    }

    let kept = scene.kept().await;
    assert_eq!(kept.len(), named.len());
    for ((payload, signature), line) in kept.iter().zip(lines.iter().rev()) {
        let file = format!("ada {line}");
        assert!(scene.keygen.verifies(&file, "ada", payload.as_bytes(), signature), "{payload}");
        assert!(!scene.keygen.verifies(&file, "ada", format!("{payload} ").as_bytes(), signature));
    }
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let scene = Scene::start().await;
    let (ada, ben) = (scene.keygen.generate("ada", "ed25519", ""), scene.keygen.generate("ben", "ed25519", ""));
    let eve = scene.keygen.generate("eve", "ed25519", "");
    let _one = scene.server("web-1", "web-1", &[("ada", &ada)], "").await;
    let _two = scene.server("db-1", "database", &[("ada", &ada), ("ben", &ben)], "approvals = 2\n").await;
    let _open = scene.site.agent("open-1", &[], &["--commands", "on"]).await;
    let exec = async |options: &[&str], server: &str| {
        let skew: &[&str] = if options.contains(&"--sign") { &["--clock-skew", "0s"] } else { &[] };
        scene.site.run(&[&["exec"], options, skew, &[server, "--", "echo done"]].concat()).await
    };
    let (ada_file, ben_file, eve_file) = (scene.key("ada"), scene.key("ben"), scene.key("eve"));

    let unsigned = exec(&[], "web-1").await;
    unsigned.refused(1, "web-1 asks for signatures. Sign: signalboxctl exec --sign ~/.ssh/id_ed25519 web-1 -- COMMAND");
    let stranger = exec(&["--sign", &eve_file], "web-1").await;
    let words = eve.rsplit_once(' ').unwrap().0;
    stranger.refused(1, &format!("restart the agent:\n  YOUR-NAME {words}\n"));
    exec(&["--sign", &ada_file, "--sign", &ben_file, "--as", "db-1"], "db-1").await.refused(1, "sign with --as NAME");
    let alone = exec(&["--sign", &ada_file, "--as", "database"], "db-1").await;
    alone.refused(1, "1 of 2 signers have signed");
    assert!(alone.stderr.contains("repeat --sign"), "{alone:?}");
    let both = exec(&["--sign", &ada_file, "--sign", &ben_file, "--as", "database"], "db-1").await;
    assert_ran(&both, "done\n");
    let unchecked = exec(&["--sign", &ada_file], "open-1").await;
    unchecked.refused(1, "The agent of open-1 does not check signatures here");

    for (options, words) in [
        (&["--as", "web-1"][..], "--sign"),
        (
            &["--sign", &ada_file, "--valid-for", "2d"],
            "--valid-for has to be at least 1s, and with --clock-skew at most 24h",
        ),
        (&["--sign", "/does/not/exist"], "cannot sign with /does/not/exist: No such file"),
        (&["--sign", "/etc/passwd"], "it is not a private key as ssh-keygen writes it"),
    ] {
        exec(options, "web-1").await.refused(2, words);
    }
    fs::set_permissions(&ada_file, Permissions::from_mode(0o644)).unwrap();
    exec(&["--sign", &ada_file], "web-1").await.refused(2, "other users can read it (mode 0644)");
    assert_eq!(scene.kept().await.len(), 4, "what was refused here was not sent");
}

#[tokio::test]
async fn the_servers_that_the_service_names_are_confirmed() {
    let scene = Scene::start().await;
    let ada = scene.keygen.generate("ada", "ed25519", "");
    let web = scene.server("web-1", "web-1", &[("ada", &ada)], "").await;
    let _other = scene.server("web-2", "web-2", &[("ada", &ada)], "").await;
    scene.site.add_server("db-1", &[]).await;
    let key = scene.key("ada");
    let batch = ["exec", "--clock-skew", "0s", "--sign", &key, "--tag", "production", "--", "echo done"];

    let unsure = scene.site.run(&batch).await;
    unsure.refused(2, "confirm with --yes");
    scene.site.run(&["exec", "--sign", &key, &web.server_id, "--", "true"]).await.refused(2, "confirm with --yes");
    assert_eq!(scene.kept().await, []);

    let sure = scene.site.run(&[&batch[..7], &["--yes"], &batch[7..]].concat()).await;
    assert_ran(&sure, "── 2 servers: web-1, web-2\ndone\n");
    assert!(sure.stderr.contains("  servers    web-1, web-2\n"), "{sure:?}");
    assert_eq!(scene.kept().await.len(), 1, "a batch is signed once");

    let mut asked = Terminal::start(&scene.site, &batch);
    asked.until("Sign for them? [y/N]").await;
    asked.enter("n\r");
    assert_eq!(asked.ended().await, Some(1));
    assert_eq!(scene.kept().await.len(), 1);

    let unsigned = scene.site.run(&["exec", "--tag", "production", "--", "echo done"]).await;
    unsigned.refused(1, "asks for signatures. Sign: signalboxctl exec --sign");
    let many = scene.site.run(&[&batch[..7], &["--as", "x"], &batch[7..]].concat()).await;
    many.refused(2, "--as is for one server");
}

#[tokio::test]
async fn a_passphrase_is_asked_on_the_terminal() {
    let scene = Scene::start().await;
    let ada = scene.keygen.generate("ada", "ed25519", "");
    let key = scene.key("ada");
    let encrypt = ["-q", "-p", "-P", "", "-N", "open sesame", "-a", "2", "-f", &key];
    assert!(Command::new("ssh-keygen").args(encrypt).stdout(Stdio::null()).status().unwrap().success());
    let _agent = scene.server("web-1", "web-1", &[("ada", &ada)], "").await;
    let call = ["exec", "--clock-skew", "0s", "--sign", &key, "web-1", "--", "echo done-$((40+2))"];

    scene.site.run(&call).await.refused(2, "nobody can be asked for its passphrase here: use --sign ssh-agent");
    let mut terminal = Terminal::start(&scene.site, &call);
    terminal.until(&format!("Passphrase of {key}: ")).await;
    terminal.raw().await;
    terminal.enter("wrong\r");
    terminal.until("the passphrase is wrong").await;
    terminal.raw().await;
    terminal.enter("open sesame\r");
    terminal.until("done-42").await;
    assert_eq!(terminal.ended().await, Some(0));
    assert!(!terminal.shown().contains("sesame"), "{}", terminal.shown());

    let own = scene.site.command(&call);
    let mut piped = Command::new("/bin/sh");
    piped.env_clear().envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let script = "printf 'typed\\n' | \"$0\" exec -i --clock-skew 0s --sign \"$1\" web-1 -- 'cat; echo end-$((40+3))'";
    let mut piped = Terminal::of(piped.args(["-c", script, env!("CARGO_BIN_EXE_signalboxctl"), &key]));
    piped.until("Passphrase of").await;
    piped.raw().await;
    piped.enter("open sesame\r");
    piped.until("typed\r\nend-43").await;
    assert_eq!(piped.ended().await, Some(0));

    let mut wrong = Terminal::start(&scene.site, &call);
    for attempt in 1..=3 {
        wrong.until("Passphrase of ").await;
        wrong.raw().await;
        wrong.enter(&format!("wrong-{attempt}\r"));
        let said = || wrong.shown().matches("the passphrase is wrong").count() >= attempt;
        crate::support::eventually("it is refused", async || said().then_some(())).await;
    }
    assert_eq!(wrong.ended().await, Some(2));
    assert_eq!(scene.kept().await.len(), 2);
}

#[tokio::test]
async fn the_ssh_agent_signs_with_the_key_that_is_named() {
    let scene = Scene::start().await;
    let ada = scene.keygen.generate("ada", "ed25519", "");
    let rsa = scene.keygen.generate("rsa", "rsa", "2048");
    let _agent = scene.server("web-1", "web-1", &[("ada", &ada), ("ada", &rsa)], "").await;
    let ssh_agent = SshAgent::start().await;
    let exec = async |sign: &str| {
        let mut command =
            scene.site.command(&["exec", "--clock-skew", "0s", "--sign", sign, "web-1", "--", "echo done"]);
        command.env("SSH_AUTH_SOCK", ssh_agent.socket());
        Running::start(command).outcome().await
    };

    exec("ssh-agent").await.refused(2, "the ssh-agent has no key that can sign: add one with ssh-add");
    ssh_agent.add(&scene.keygen.path("ada"));
    assert_ran(&exec("ssh-agent").await, "done\n");
    ssh_agent.add(&scene.keygen.path("rsa"));
    let many = exec("ssh-agent").await;
    many.refused(2, "the ssh-agent has 2 keys: name one by its fingerprint");
    let fingerprint = scene.keygen.fingerprint(&rsa);
    assert!(many.stderr.contains(&format!("  {fingerprint} test\n")), "{many:?}");
    assert_ran(&exec(&format!("ssh-agent:{fingerprint}")).await, "done\n");
    assert_ran(&exec(&format!("{}.pub", scene.key("ada"))).await, "done\n");
    exec("ssh-agent:nobody").await.refused(2, "the ssh-agent has no key \"nobody\"");
    let without = scene.site.run(&["exec", "--sign", "ssh-agent", "web-1", "--", "true"]).await;
    without.refused(2, "SSH_AUTH_SOCK is not set");

    let kept = scene.kept().await;
    assert_eq!(kept.len(), 3);
    assert!(scene.keygen.verifies(&format!("ada {rsa}"), "ada", kept[1].0.as_bytes(), &kept[1].1));
}

#[tokio::test]
async fn a_security_key_signs_through_the_ssh_agent() {
    let scene = Scene::start().await;
    let key = SecurityKey::generate();
    let _agent = scene.server("web-1", "web-1", &[("ada", &key.line())], "").await;
    let exec = async |flags: u8| {
        let ssh_agent = key.serve(flags);
        let mut command =
            scene.site.command(&["exec", "--clock-skew", "0s", "--sign", "ssh-agent", "web-1", "--", "echo done"]);
        command.env("SSH_AUTH_SOCK", ssh_agent.path().join("agent.sock"));
        Running::start(command).outcome().await
    };

    let touched = exec(1).await;
    assert_ran(&touched, "done\n");
    assert!(touched.stderr.ends_with("Touch the security key.\n"), "{touched:?}");
    exec(0).await.refused(1, "the security key was not touched");

    let kept = scene.kept().await;
    assert_eq!(kept.len(), 1);
    assert!(scene.keygen.verifies(&format!("ada {}", key.line()), "ada", kept[0].0.as_bytes(), &kept[0].1));
}

#[tokio::test]
async fn input_terminals_and_containers_are_signed_too() {
    let scene = Scene::start().await;
    let ada = scene.keygen.generate("ada", "ed25519", "");
    let _agent = scene.server("web-1", "web-1", &[("ada", &ada)], "").await;
    let key = scene.key("ada");

    let mut command =
        scene.site.command(&["exec", "-i", "--clock-skew", "0s", "--sign", &key, "web-1", "--", "tr a-z A-Z"]);
    let mut running = Running::start({
        command.stdin(Stdio::piped());
        command
    });
    running.child.stdin.take().unwrap().write_all(b"input\n").unwrap();
    let input = running.outcome().await;
    assert_ran(&input, "INPUT\n");
    assert!(input.stderr.contains("  input      6 bytes, SHA-256 "), "{input:?}");

    let mut terminal =
        Terminal::start(&scene.site, &["shell", "--clock-skew", "0s", "--sign", &key, "--open-for", "5m", "web-1"]);
    terminal.until("timeout    300 s").await;
    terminal.enter("echo begun-$((40+2))\r");
    terminal.until("begun-42").await;
    terminal.enter("exit\r");
    assert_eq!(terminal.ended().await, Some(0));
    let mut unsigned = Terminal::start(&scene.site, &["shell", "web-1"]);
    assert_eq!(unsigned.ended().await, Some(1));
    unsigned.until("Sign: signalboxctl shell --sign").await;

    // The agent permits it. That there is no such container is the engine's answer, if there is an engine.
    let signed = scene
        .site
        .run(&["containers", "web-1", "restart", "nginx", "--timeout", "3", "--clock-skew", "0s", "--sign", &key])
        .await;
    assert!(signed.stderr.contains("  container  restart nginx\n  timeout    3 s\n"), "{signed:?}");
    assert!(!signed.stderr.contains("asks for signatures"), "{signed:?}");
    let refused = scene.site.run(&["containers", "web-1", "stop", "nginx"]).await;
    refused.refused(1, "web-1 asks for signatures. Sign: signalboxctl containers web-1");

    let payloads: Vec<Value> =
        scene.kept().await.iter().map(|(payload, _)| serde_json::from_str(payload).unwrap()).collect();
    let kinds: Vec<&Value> = payloads.iter().map(|payload| &payload["kind"]).collect();
    assert_eq!(kinds, [&json!("container"), &json!("terminal"), &json!("command")]);
    assert_eq!(payloads[1]["timeout_seconds"], json!(300));
}
