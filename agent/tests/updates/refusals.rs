//! What the agent takes from nobody.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use signalbox_protocol::agent::UpdateOffer;

use crate::host::{Host, INSTALLED, program};
use crate::programs;

/// Checks that the agent neither fetched anything nor ended, and that the same offer is taken when it is genuine.
async fn expect_untouched(host: &mut Host, pid: u32) {
    let info = host.request("agent.info", Value::Null).await.unwrap();
    assert_eq!((info["version"].as_str(), host.pid()), (Some(INSTALLED), pid));
    assert_eq!((host.service.fetched(), host.kept()), (0, Vec::<String>::new()));
    let offer = host.genuine("99.0.0", &programs::exits());
    assert_eq!(host.offer(&offer).await, Ok("99.0.0".to_owned()));
}

#[tokio::test]
async fn a_seized_service_cannot_offer_what_nobody_signed() {
    let mut host = Host::start().await;
    let pid = host.pid();
    let release = host.release("99.0.0", &programs::exits());
    let genuine = host.signed(&release, "release");

    let unsigned = ["", "-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----\n", "{}"];
    for signature in unsigned {
        let offer = UpdateOffer { signature: signature.to_owned(), ..genuine.clone() };
        assert_eq!(host.offer(&offer).await, Err("unknown_signer".to_owned()), "{signature}");
    }
    let forged = [
        host.signed(&release, "eve"),
        host.signed(&release, "old"),
        host.signed_as("signalbox-command-v1", &release, "release"),
        host.signed_as("signalbox-release-v1", &release, "release"),
        host.signed_as("file", &release, "release"),
        UpdateOffer { signature: host.signed(b"{}", "release").signature, ..genuine.clone() },
    ];
    for offer in &forged {
        assert_eq!(host.offer(offer).await, Err("unknown_signer".to_owned()));
    }
    // A signature that names the pinned key, with the bytes of another one.
    let mut blob = crate::keygen::blob(&host.signed(&release, "eve").signature);
    let [eve, pinned] = ["eve", "release"].map(|name| {
        crate::keygen::key_bytes(&std::fs::read_to_string(host.keygen.path(&format!("{name}.pub"))).unwrap())
    });
    let place = blob.windows(eve.len()).position(|window| window == eve).unwrap();
    blob[place..place + eve.len()].copy_from_slice(&pinned);
    let offer = UpdateOffer { signature: crate::keygen::armored(&blob), ..genuine.clone() };
    assert_eq!(host.offer(&offer).await, Err("unknown_signer".to_owned()));

    expect_untouched(&mut host, pid).await;
    host.expect_tries(10);
}

#[tokio::test]
async fn a_seized_service_cannot_change_a_bit_of_a_release_or_of_its_signature() {
    let mut host = Host::start().await;
    let pid = host.pid();
    let release = host.release("99.0.0", &programs::exits());
    let genuine = host.signed(&release, "release");

    for place in 0..release.len() * 8 {
        let mut altered = release.clone();
        altered[place / 8] ^= 1 << (place % 8);
        let offer = UpdateOffer { release: BASE64_STANDARD.encode(altered), ..genuine.clone() };
        assert_eq!(host.offer(&offer).await, Err("unknown_signer".to_owned()), "bit {place} of the release");
    }
    let blob = crate::keygen::blob(&genuine.signature);
    for place in 0..blob.len() * 8 {
        let mut altered = blob.clone();
        altered[place / 8] ^= 1 << (place % 8);
        let offer = UpdateOffer { signature: crate::keygen::armored(&altered), ..genuine.clone() };
        assert_eq!(host.offer(&offer).await, Err("unknown_signer".to_owned()), "bit {place} of the signature");
    }

    expect_untouched(&mut host, pid).await;
    host.expect_tries(2_500);
}

#[tokio::test]
async fn a_seized_service_cannot_offer_an_older_build_or_one_for_others() {
    let mut host = Host::start().await;
    let pid = host.pid();
    let bytes = programs::exits();

    for version in ["0.0.1", "0.0.1-rc.1", "0.0.0", &format!("{INSTALLED}-rc.1"), INSTALLED] {
        let offer = host.signed(&host.release(version, &bytes), "release");
        assert_eq!(host.offer(&offer).await, Err("not_newer".to_owned()), "{version}");
    }
    for name in ["signalbox-agent-linux-m68k", "signalbox-agent", "../signalbox-agent", &format!("{}.exe", program())] {
        let offer = host.signed(&host.release_for(name, "99.0.0", &bytes), "release");
        assert_eq!(host.offer(&offer).await, Err("no_build".to_owned()), "{name}");
    }

    expect_untouched(&mut host, pid).await;
    host.expect_tries(9);
}

#[tokio::test]
async fn a_signed_text_that_is_no_release_is_malformed() {
    let mut host = Host::start().await;
    let pid = host.pid();
    let bytes = programs::exits();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut release: Value = serde_json::from_slice(&host.release("99.0.0", &bytes)).unwrap();
        change(&mut release);
        release.to_string().into_bytes()
    };
    let texts = [
        Vec::new(),
        b"{}".to_vec(),
        b"null".to_vec(),
        b"\xff\xfe".to_vec(),
        with(&|release| release["v"] = json!(2)),
        with(&|release| release["v"] = json!(-1)),
        with(&|release| release["version"] = json!("99")),
        with(&|release| release["version"] = json!("99.0.0+build")),
        with(&|release| release["version"] = json!("99.0.0\n")),
        with(&|release| release["programs"][program()]["sha256"] = json!("../../policy.toml")),
        with(&|release| release["programs"][program()]["bytes"] = json!(1_u64 << 40)),
        with(&|release| release["programs"][program()]["bytes"] = json!(0)),
        with(&|release| release["padding"] = json!("x".repeat(16 * 1024))),
    ];

    for text in &texts {
        let offer = host.signed(text, "release");
        assert_eq!(host.offer(&offer).await, Err("malformed".to_owned()), "{}", String::from_utf8_lossy(text));
    }
    let genuine = host.signed(&host.release("99.0.0", &bytes), "release");
    for release in ["not base64!".to_owned(), "A".repeat(1 << 20), format!("{}=", genuine.release)] {
        let offer = UpdateOffer { release, ..genuine.clone() };
        assert_eq!(host.offer(&offer).await, Err("malformed".to_owned()));
    }
    let offer = UpdateOffer { signature: "A".repeat(64 * 1024), ..genuine.clone() };
    assert_eq!(host.offer(&offer).await, Err("malformed".to_owned()));

    expect_untouched(&mut host, pid).await;
    host.expect_tries(17);
}

#[tokio::test]
async fn a_key_that_has_expired_or_is_for_commands_signs_no_release() {
    let mut host = Host::stopped("updates = \"signed\"\n").await;
    let key = |name: &str| std::fs::read_to_string(host.keygen.path(&format!("{name}.pub"))).unwrap();
    host.pin(&format!(
        "release {}old valid-before=\"20200101Z\" {}eve namespaces=\"signalbox-command-v1\" {}",
        key("release"),
        key("old"),
        key("eve")
    ));
    host.run().await;
    let pid = host.pid();
    let release = host.release("99.0.0", &programs::exits());

    for key in ["old", "eve"] {
        let offer = host.signed(&release, key);
        assert_eq!(host.offer(&offer).await, Err("unknown_signer".to_owned()), "{key}");
    }

    expect_untouched(&mut host, pid).await;
    host.expect_tries(2);
}

#[tokio::test]
async fn an_agent_whose_owner_permits_no_updates_takes_none() {
    let mut host = Host::stopped("commands = \"off\"\n").await;
    let auth = host.run().await;
    let offer = host.genuine("99.0.0", &programs::exits());

    assert_eq!(host.offer(&offer).await, Err("updates_off".to_owned()));

    assert!(!auth.agent.capabilities.contains(&"updates".to_owned()));
    assert_eq!(host.service.fetched(), 0);
    host.expect_tries(1);
}
