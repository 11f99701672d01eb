//! Variables of the environment: each flag has one, an empty one is not set, and an unknown one is refused.

use tempfile::TempDir;

use crate::support::command_line::{Launched, run, signalbox};
use crate::support::registration;

#[actix_web::test]
async fn a_bad_value_is_refused_as_that_of_a_flag() {
    // The variable, its value, and the content of the line.
    let cases = [
        ("SIGNALBOX_REGISTRATION", "maybe", "--registration"),
        ("SIGNALBOX_LOG", "wran", "--log"),
        ("SIGNALBOX_LISTN", "127.0.0.1:0", "SIGNALBOX_LISTEN"),
        ("SIGNALBOX_LOGFORMAT", "json", "SIGNALBOX_LOG_FORMAT"),
        ("SIGNALBOX_SMTP_FROM", "signalbox@example.com", "--smtp-url"),
    ];

    for (name, value, named) in cases {
        for arguments in [&[][..], &["serve"]] {
            let mut command = signalbox(arguments);
            command.env(name, value);
            let outcome = run(command).await;
            outcome.assert_refused(named);
            assert!(name != "SIGNALBOX_LISTN" || outcome.stderr.contains(name), "{outcome:?}");
        }
    }
}

#[actix_web::test]
async fn a_variable_that_is_like_no_other_is_refused_without_a_suggestion() {
    let mut command = signalbox(&["serve"]);
    command.env("SIGNALBOX_FOO", "1");

    let outcome = run(command).await;

    outcome.assert_refused("SIGNALBOX_FOO");
    assert!(!outcome.stderr.contains("nearest"), "{outcome:?}");
}

#[actix_web::test]
async fn an_empty_variable_and_those_of_others_set_nothing() {
    let data = TempDir::new().unwrap();
    let mut command = signalbox(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data.path().to_str().unwrap()]);
    let empty =
        ["DATABASE_URL", "NATS_URL", "SMTP_URL", "SMTP_FROM", "PUBLIC_URL", "ALLOWED_ORIGINS", "TRUSTED_PROXIES"];
    for name in empty.into_iter().chain(["LOG", "WORKERS", "DRAIN", "REGISTRATION", "INSTALL_DIR"]) {
        command.env(format!("SIGNALBOX_{name}"), "");
    }
    // Those of the agent, signalboxctl and install.sh, and those that Kubernetes sets for a service of this name.
    command.env("SIGNALBOX_AGENT_KEY", "sbk_1").env("SIGNALBOX_CA_FILE", "ca.pem").env("SIGNALBOX_TOKEN", "sbt_1");
    command.env("SIGNALBOX_ENROLMENT_TOKEN", "sbe_1").env("SIGNALBOX_SERVICE_HOST", "10.0.0.1");
    command.env("SIGNALBOX_PORT", "tcp://10.0.0.1:8000").env("SIGNALBOX_PORT_8000_TCP_ADDR", "10.0.0.1");

    let mut service = Launched::start(command);

    service.client().await.post("/auth/register").json(registration("alice")).expect(201).await;
}
