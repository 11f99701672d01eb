//! The wire: exact JSON, and the same maps in MessagePack.

use serde_json::json;
use signalbox_protocol::agent::{
    AgentMessage, AuthResponse, ListRecordings, LogLine, LogLines, LogsStart, Metrics, ReadRecording, ServiceMessage,
};
use signalbox_protocol::frontend::{FeedMessage, SubscriberMessage};
use signalbox_protocol::sample::Unread;
use signalbox_protocol::series::{SeriesDescription, SeriesKind, Unit};
use signalbox_protocol::signed::Signature;
use signalbox_protocol::{Decoded, Encoding, Sample, Timestamp};
use uuid::Uuid;

fn metrics() -> AgentMessage {
    let sample = Sample { timestamp: Timestamp::from_millis(1_700_000_000_123), cpu_percent: 1.5, ..Sample::default() };
    AgentMessage::Metrics(Metrics { seq: 7, samples: vec![sample], sent_at: None })
}

#[test]
fn both_encodings_carry_the_same_map() {
    let message = metrics();

    let json: serde_json::Value = serde_json::from_slice(&Encoding::Json.encode(&message).unwrap()).unwrap();
    let packed: serde_json::Value = rmp_serde::from_slice(&Encoding::MessagePack.encode(&message).unwrap()).unwrap();

    assert_eq!(json, packed);
    assert_eq!(json["data"]["samples"][0]["timestamp"], "2023-11-14T22:13:20.123Z");
}

#[test]
fn unread_entries_are_sent_beside_the_lists_that_lack_them() {
    let unread = |list: &str, name: Option<&str>| Unread { list: list.to_owned(), name: name.map(str::to_owned) };
    let unread = vec![unread("disk_usage", Some("/mnt/nas")), unread("temperatures", None)];

    let written = serde_json::to_value(Sample { unread: unread.clone(), ..Sample::default() }).unwrap();

    assert_eq!(written["unread"], json!([{"list": "disk_usage", "name": "/mnt/nas"}, {"list": "temperatures"}]));
    assert_eq!(serde_json::from_value::<Sample>(written).unwrap().unread, unread);
    assert_eq!(serde_json::to_value(Sample::default()).unwrap().get("unread"), None);
}

#[test]
fn what_is_signed_has_this_form_in_both_encodings_and_an_unknown_kind_is_read() {
    let written = json!({"type": "execute", "data": {
        "command_id": Uuid::nil(), "command": "true", "stdin": null, "timeout_seconds": 60,
        "signed": {"payload": "e30=", "signatures": [
            {"type": "sshsig", "signature": "text"},
            {"type": "webauthn", "client_data_json": "a", "authenticator_data": "b", "signature": "c"},
        ]},
    }});
    let message: ServiceMessage = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(&message).unwrap(), written);
    let packed = Encoding::MessagePack.encode(&message).unwrap();
    assert_eq!(Encoding::MessagePack.decode::<ServiceMessage>(&packed).unwrap(), Decoded::Known(message));

    let mut newer = written;
    newer["data"]["signed"]["signatures"][1] = json!({"type": "pgp", "armored": "x"});
    let ServiceMessage::Execute(execute) = serde_json::from_value(newer).unwrap() else { panic!("an order") };
    assert_eq!(execute.signed.unwrap().signatures[1], Signature::Unknown);
}

#[test]
fn the_asker_of_a_request_has_this_form_or_is_absent() {
    let written = |asker: serde_json::Value| {
        let stream_id = Uuid::nil();
        json!({"type": "terminal_start", "data": {"stream_id": stream_id, "columns": 80, "rows": 24, "asker": asker}})
    };
    for asker in [json!({"user": "ada", "teams": ["ops", "web"]}), json!({"user": "ada"})] {
        let written = written(asker);
        let message: ServiceMessage = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&message).unwrap(), written);
    }
    let ServiceMessage::TerminalStart(start) = serde_json::from_value(written(json!(null))).unwrap() else {
        panic!("a terminal")
    };
    assert_eq!(start.asker, None);
}

#[test]
fn recordings_have_this_form_and_those_of_older_agents_are_read() {
    let id = Uuid::nil();
    let hash = "0".repeat(64);
    let written = json!({"type": "terminal_recorded", "data": {
        "stream_id": id, "by": "ada from ::1", "started_at": "2023-11-14T22:13:20.000Z", "seconds": 1.5, "bytes": 120,
        "sha256": hash, "columns": 80, "rows": 24,
    }});
    let ack = json!({"type": "recorded_ack", "data": {"stream_id": id}});
    let report: AgentMessage = serde_json::from_value(written.clone()).unwrap();
    let answer: ServiceMessage = serde_json::from_value(ack.clone()).unwrap();

    assert_eq!((json!(report), json!(answer)), (written.clone(), ack));
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        assert_eq!(encoding.decode(&encoding.encode(&report).unwrap()).unwrap(), Decoded::Known(report.clone()));
        assert_eq!(encoding.decode(&encoding.encode(&answer).unwrap()).unwrap(), Decoded::Known(answer.clone()));
    }
    let mut interrupted = written;
    interrupted["data"]["interrupted"] = json!(true);
    let report: AgentMessage = serde_json::from_value(interrupted.clone()).unwrap();
    assert_eq!(json!(report), interrupted);
    let list = json!({"limit": 10, "offset": 0, "asker": {"user": "ada"}});
    assert_eq!(json!(serde_json::from_value::<ListRecordings>(list.clone()).unwrap()), list);
    let read = json!({"recording_id": id, "offset": 7});
    assert_eq!(json!(serde_json::from_value::<ReadRecording>(read.clone()).unwrap()), read);
}

#[test]
fn live_samples_and_the_request_for_them_have_this_form() {
    let sample = Sample { timestamp: Timestamp::from_millis(1_700_000_000_123), cpu_percent: 1.5, ..Sample::default() };
    let live = AgentMessage::Live { sample: Box::new(sample.clone()) };
    let watched = ServiceMessage::Watched { interval_seconds: 1.0, for_seconds: 10.0 };

    assert_eq!(json!(live), json!({"type": "live", "data": {"sample": sample}}));
    let expected = json!({"type": "watched", "data": {"interval_seconds": 1.0, "for_seconds": 10.0}});
    assert_eq!(json!(watched), expected);
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let decoded = encoding.decode::<AgentMessage>(&encoding.encode(&live).unwrap()).unwrap();
        assert_eq!(decoded, Decoded::Known(live.clone()));
        let decoded = encoding.decode::<ServiceMessage>(&encoding.encode(&watched).unwrap()).unwrap();
        assert_eq!(decoded, Decoded::Known(watched.clone()));
    }
}

#[test]
fn an_agent_that_sends_no_live_samples_says_nothing_of_them() {
    let auth = r#"{"type": "auth", "data": {"api_key": "k", "protocol": 1, "agent": {"version": "1.0.0"}}}"#;

    let Decoded::Known(message) = Encoding::Json.decode::<AgentMessage>(auth.as_bytes()).unwrap() else {
        panic!("auth is known")
    };

    let AgentMessage::Auth(read) = &message else { panic!("not {message:?}") };
    assert_eq!(read.live_interval_seconds, None);
    assert_eq!(json!(message)["data"].get("live_interval_seconds"), None);
}

fn described() -> AgentMessage {
    let busy = SeriesDescription {
        id: 3,
        name: "disk_busy".into(),
        unit: Unit::Percent,
        kind: SeriesKind::Gauge,
        target: Some("sda".into()),
        help: "Share of the time that the device was busy.".into(),
    };
    let switches = SeriesDescription {
        id: 4,
        name: "context_switches".into(),
        unit: Unit::PerSecond,
        kind: SeriesKind::Counter,
        target: None,
        help: String::new(),
    };
    AgentMessage::Series { series: vec![busy, switches] }
}

#[test]
fn open_series_have_this_form() {
    let message = described();

    let expected = json!({"type": "series", "data": {"series": [
        {"id": 3, "name": "disk_busy", "unit": "percent", "kind": "gauge", "target": "sda",
         "help": "Share of the time that the device was busy."},
        {"id": 4, "name": "context_switches", "unit": "per_second", "kind": "counter", "target": null, "help": ""},
    ]}});
    assert_eq!(json!(message), expected);
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let decoded = encoding.decode::<AgentMessage>(&encoding.encode(&message).unwrap()).unwrap();
        assert_eq!(decoded, Decoded::Known(message.clone()));
    }
}

#[test]
fn an_unknown_unit_kind_or_id_is_malformed() {
    let with = |fields: &str| {
        let text = format!(r#"{{"type": "series", "data": {{"series": [{{{fields}}}]}}}}"#);
        Encoding::Json.decode::<AgentMessage>(text.as_bytes())
    };

    assert!(
        with(r#""id": 65535, "name": "a", "unit": "bool", "kind": "last""#).is_ok(),
        "target and help may be missing"
    );
    for bad in [
        r#""id": 65536, "name": "a", "unit": "bool", "kind": "last""#,
        r#""id": -1, "name": "a", "unit": "bool", "kind": "last""#,
        r#""id": 1, "name": "a", "unit": "furlongs", "kind": "last""#,
        r#""id": 1, "name": "a", "unit": "bool", "kind": "histogram""#,
        r#""id": 1, "unit": "bool", "kind": "last""#,
    ] {
        assert!(with(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_values_of_a_sample_are_pairs_and_whole_ones_are_integers() {
    let sample = Sample { values: vec![(3, 12.5), (4, 300.0), (300, -1.0), (5, 1e300)], ..Sample::default() };

    let written = serde_json::to_value(&sample).unwrap();
    let mut packed = Vec::new();
    serde::Serialize::serialize(&sample, &mut rmp_serde::Serializer::new(&mut packed).with_struct_map()).unwrap();

    assert_eq!(written["values"].to_string(), "[[3,12.5],[4,300],[300,-1],[5,1e+300]]");
    assert_eq!(serde_json::from_value::<Sample>(written).unwrap().values, sample.values);
    let golden = b"\xa6values\x94\x92\x03\xcb\x40\x29\0\0\0\0\0\0\x92\x04\xcd\x01\x2c\x92\xcd\x01\x2c\xff\x92\x05\xcb";
    assert!(packed.windows(golden.len()).any(|window| window == golden), "{packed:x?}");
    assert_eq!(rmp_serde::from_slice::<Sample>(&packed).unwrap().values, sample.values);
    assert_eq!(
        serde_json::to_value(Sample::default()).unwrap().get("values"),
        None,
        "nothing is sent where there are none"
    );
}

#[test]
fn a_value_that_is_not_finite_makes_a_sample_invalid() {
    let sample = Sample { values: vec![(3, f64::NAN)], ..Sample::default() };

    assert_eq!(sample.validate().unwrap_err().to_string(), "values is out of range");
}

#[test]
fn ids_are_strings_in_messagepack_too() {
    let id = Uuid::nil();
    let bytes = Encoding::MessagePack.encode(&ServiceMessage::Cancel { command_id: id }).unwrap();

    let map: serde_json::Value = rmp_serde::from_slice(&bytes).unwrap();

    assert_eq!(map, json!({"type": "cancel", "data": {"command_id": id.to_string()}}));
}

#[test]
fn requests_lines_and_feeds_of_logs_have_this_form() {
    let stream_id = Uuid::nil();
    let start = LogsStart {
        stream_id,
        source: "file".into(),
        container_id: None,
        path: Some("/var/log/app.log".into()),
        tail: Some(5),
        credit: Some(1_000),
        by: Some("ada from 192.0.2.1".into()),
    };
    let timestamp = Some(Timestamp::from_millis(1_700_000_000_123));
    let line = LogLine { timestamp, stream: None, message: "hello".into() };
    let lines = LogLines { stream_id, lines: vec![line], dropped: 2 };
    let shown = FeedMessage::Log { source: "file".into(), timestamp, stream: None, message: "hello".into() };

    let asked = json!({"type": "logs_start", "data": {
        "stream_id": stream_id, "source": "file", "path": "/var/log/app.log", "tail": 5, "credit": 1_000,
        "by": "ada from 192.0.2.1",
    }});
    let line = json!({"timestamp": "2023-11-14T22:13:20.123Z", "stream": null, "message": "hello"});
    let sent = json!({"type": "log_lines", "data": {"stream_id": stream_id, "lines": [line], "dropped": 2}});
    assert_eq!(json!(ServiceMessage::LogsStart(start)), asked);
    assert_eq!(json!(AgentMessage::LogLines(lines)), sent);
    let data = json!({"source": "file", "timestamp": "2023-11-14T22:13:20.123Z", "stream": null, "message": "hello"});
    assert_eq!(json!(shown), json!({"type": "log", "data": data}));
}

#[test]
fn an_error_has_a_reason_only_where_there_is_one() {
    let error = |reason: Option<&str>| FeedMessage::Error {
        code: "agent_refused".into(),
        detail: "no".into(),
        reason: reason.map(Into::into),
    };
    let cases = [
        (error(None), json!({"type": "error", "data": {"code": "agent_refused", "detail": "no"}})),
        (
            error(Some("replayed")),
            json!({"type": "error", "data": {"code": "agent_refused", "detail": "no", "reason": "replayed"}}),
        ),
    ];

    for (message, form) in cases {
        assert_eq!(json!(message), form);
        assert_eq!(serde_json::from_value::<FeedMessage>(form).unwrap(), message);
    }
}

#[test]
fn a_message_survives_the_round_trip() {
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let decoded = encoding.decode::<AgentMessage>(&encoding.encode(&metrics()).unwrap()).unwrap();

        assert_eq!(decoded, Decoded::Known(metrics()));
    }
}

#[test]
fn data_may_stand_before_type() {
    let text = br#"{"data": {"seq": 3}, "type": "ack"}"#;

    assert_eq!(Encoding::Json.decode(text).unwrap(), Decoded::Known(ServiceMessage::Ack { seq: 3 }));
}

#[test]
fn unknown_types_and_fields_of_a_newer_peer_are_no_error() {
    let newer = br#"{"type": "teleport", "data": {"to": [1, 2, {"x": null}]}}"#;
    let field = br#"{"type": "ack", "data": {"seq": 3, "mood": "fine"}, "trace": 1}"#;

    assert_eq!(Encoding::Json.decode::<ServiceMessage>(newer).unwrap(), Decoded::Unknown);
    assert_eq!(Encoding::Json.decode(field).unwrap(), Decoded::Known(ServiceMessage::Ack { seq: 3 }));
}

#[test]
fn the_token_of_a_dashboard_stands_beside_the_type_or_in_data() {
    let token = |message| match serde_json::from_value(message).unwrap() {
        SubscriberMessage::Auth { token, data } => (token, data.and_then(|data| data.token)),
        SubscriberMessage::Ping => panic!("a token"),
    };
    let new = || Some("new".to_owned());

    assert_eq!(token(json!({"type": "auth", "token": "new"})), (new(), None));
    assert_eq!(token(json!({"type": "auth", "token": "new", "data": {}, "trace": 1})), (new(), None));
    assert_eq!(token(json!({"type": "auth", "token": "new", "data": {"mood": "fine"}})), (new(), None));
    assert_eq!(token(json!({"type": "auth", "data": {"token": "new"}})), (None, new()));
}

#[test]
fn garbage_is_malformed_in_both_encodings() {
    let deep = "[".repeat(100_000);
    let cases: [&[u8]; 6] =
        [b"", b"{", b"null", br#"{"type": "ack", "data": {"seq": "x"}}"#, &[0xc1, 0xff, 0x00], deep.as_bytes()];

    for bytes in cases {
        assert!(Encoding::Json.decode::<ServiceMessage>(bytes).is_err(), "{bytes:?}");
        assert!(Encoding::MessagePack.decode::<ServiceMessage>(bytes).is_err());
    }
    assert!(Encoding::MessagePack.decode::<ServiceMessage>(&[0x91; 100_000]).is_err(), "nested arrays");
}

#[test]
fn a_refusal_has_only_the_fields_of_a_refusal() {
    let message = ServiceMessage::AuthResponse(AuthResponse::refused("unauthorized", "no such key"));

    let json: serde_json::Value = serde_json::from_slice(&Encoding::Json.encode(&message).unwrap()).unwrap();

    assert_eq!(
        json,
        json!({"type": "auth_response", "data": {"success": false, "code": "unauthorized", "detail": "no such key"}})
    );
}

#[test]
fn a_key_never_shows_in_debug_output() {
    let text = br#"{"type": "auth", "data": {"api_key": "sbk_secret", "protocol": 1, "agent": {"version": "1"}}}"#;
    let Decoded::Known(message) = Encoding::Json.decode::<AgentMessage>(text).unwrap() else { panic!("known") };

    assert!(!format!("{message:?}").contains("sbk_secret"));
}
