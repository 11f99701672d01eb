use super::*;

fn record(seq: i64, previous: &[u8]) -> Record {
    let mut record = Record {
        seq,
        at: Timestamp::from_millis(1_700_000_000_000 + seq),
        owner_id: Uuid::from_u128(1),
        user_id: Some(Uuid::from_u128(2)),
        username: "ada".to_owned(),
        login_id: None,
        address: "192.0.2.1".to_owned(),
        action: "server.create".to_owned(),
        server_id: Some(Uuid::from_u128(3)),
        server_name: Some("web-1".to_owned()),
        target: None,
        outcome: "ok".to_owned(),
        detail: "{}".to_owned(),
        hash: Vec::new(),
    };
    record.hash = hash(&record, previous).to_vec();
    record
}

/// Five entries and their head.
fn log() -> (Vec<Record>, Head) {
    let mut records: Vec<Record> = Vec::new();
    for seq in 1..=5 {
        let previous = records.last().map_or(BEGINNING.to_vec(), |last| last.hash.clone());
        records.push(record(seq, &previous));
    }
    let head = Head { seq: 5, hash: records[4].hash.clone() };
    (records, head)
}

fn verify(records: &[Record], head: &Head) -> Result<Head, Broken> {
    verify_expecting(records, head, None)
}

fn verify_expecting(records: &[Record], head: &Head, expected: Option<Expectation>) -> Result<Head, Broken> {
    let mut verifier = Verifier::new(expected);
    for record in records {
        verifier.take(record)?;
    }
    verifier.finish(head)
}

#[test]
fn a_whole_log_is_whole() {
    let (records, head) = log();

    assert_eq!(verify(&records, &head), Ok(head));
}

#[test]
fn an_empty_log_is_whole() {
    let head = Head { seq: 0, hash: BEGINNING.to_vec() };

    assert_eq!(verify(&[], &head), Ok(head.clone()));
}

#[test]
fn any_changed_field_is_found() {
    let changes: [fn(&mut Record); 14] = [
        |record| record.at = record.at.plus_millis(1),
        |record| record.owner_id = Uuid::from_u128(9),
        |record| record.user_id = None,
        |record| record.username = "eve".to_owned(),
        |record| record.login_id = Some(Uuid::nil()),
        |record| record.address = "192.0.2.2".to_owned(),
        |record| record.action = "server.delete".to_owned(),
        |record| record.server_id = None,
        |record| record.server_name = None,
        |record| record.target = Some(String::new()),
        |record| record.outcome = "refused".to_owned(),
        |record| record.detail = "{ }".to_owned(),
        |record| record.hash[31] ^= 1,
        |record| record.hash.clear(),
    ];

    for (number, change) in changes.iter().enumerate() {
        let (mut records, head) = log();
        change(&mut records[2]);
        assert_eq!(verify(&records, &head), Err(Broken::Changed { seq: 3 }), "change {number}");
    }
}

#[test]
fn a_changed_entry_with_a_new_hash_breaks_the_next() {
    let (mut records, head) = log();
    records[2].username = "eve".to_owned();
    records[2].hash = hash(&records[2], &records[1].hash).to_vec();

    assert_eq!(verify(&records, &head), Err(Broken::Changed { seq: 4 }));
}

#[test]
fn a_last_entry_with_a_new_hash_is_not_the_heads() {
    let (mut records, head) = log();
    records[4].username = "eve".to_owned();
    records[4].hash = hash(&records[4], &records[3].hash).to_vec();

    assert_eq!(verify(&records, &head), Err(Broken::OtherHead { seq: 5 }));
}

#[test]
fn bytes_that_move_between_fields_are_found() {
    let (mut records, head) = log();
    records[2].username = "ad".to_owned();
    records[2].address = "a192.0.2.1".to_owned();

    assert_eq!(verify(&records, &head), Err(Broken::Changed { seq: 3 }));
}

#[test]
fn a_field_that_is_not_there_is_not_an_empty_one() {
    let (records, _) = log();
    let empty = Record { target: Some(String::new()), ..records[0].clone() };

    assert_ne!(hash(&empty, &BEGINNING), hash(&records[0], &BEGINNING));
}

#[test]
fn entries_that_changed_places_are_found() {
    let (mut records, head) = log();
    records.swap(1, 2);
    assert_eq!(verify(&records, &head), Err(Broken::Missing { seq: 2, found: 3 }));

    (records[1].seq, records[2].seq) = (2, 3);
    assert_eq!(verify(&records, &head), Err(Broken::Changed { seq: 2 }));
}

#[test]
fn a_removed_entry_is_found() {
    let (mut records, head) = log();
    records.remove(2);

    assert_eq!(verify(&records, &head), Err(Broken::Missing { seq: 3, found: 4 }));
}

#[test]
fn a_removed_entry_whose_gap_was_closed_is_found() {
    let (mut records, _) = log();
    records.remove(2);
    for (seq, record) in (1..).zip(&mut records) {
        record.seq = seq;
    }
    let head = Head { seq: 4, hash: records[3].hash.clone() };

    assert_eq!(verify(&records, &head), Err(Broken::Changed { seq: 3 }));
}

#[test]
fn a_cut_tail_is_found() {
    let (records, head) = log();

    assert_eq!(verify(&records[..3], &head), Err(Broken::Cut { seq: 4, head: 5 }));
    assert_eq!(verify(&[], &head), Err(Broken::Cut { seq: 1, head: 5 }));
}

#[test]
fn an_inserted_entry_is_found() {
    let (records, head) = log();
    let with = |index: usize, inserted: Record| {
        let mut records = records.clone();
        records.insert(index, inserted);
        verify(&records, &head)
    };

    assert_eq!(with(0, record(0, &BEGINNING)), Err(Broken::Misplaced { seq: 0 }));
    assert_eq!(with(2, record(2, &records[1].hash)), Err(Broken::Misplaced { seq: 2 }));
    assert_eq!(with(5, record(6, &records[4].hash)), Err(Broken::PastHead { seq: 6 }));
}

#[test]
fn an_expected_entry_must_be_the_same() {
    let (records, head) = log();
    let expect = |seq: i64, index: usize| {
        let hash = records[index].hash.clone().try_into().unwrap();
        verify_expecting(&records, &head, Some(Expectation { seq, hash }))
    };

    assert_eq!(expect(3, 2), Ok(head.clone()));
    assert_eq!(expect(5, 4), Ok(head.clone()));
    assert_eq!(expect(3, 1), Err(Broken::Unexpected { seq: 3 }));
    assert_eq!(expect(6, 4), Err(Broken::ExpectedMissing { seq: 6 }));
}

#[test]
fn the_encoding_stays_what_it_is() {
    let (records, _) = log();

    let computed_elsewhere = "aebae321348e676f4714d6c38715014d5b2c5c0f3b74d3c1202ae7945c81d818";
    assert_eq!(hex(&records[0].hash), computed_elsewhere);
}

#[test]
fn a_hash_is_64_hexadecimal_digits() {
    let hash = hash(&record(1, &BEGINNING), &BEGINNING);
    let written = hex(&hash);

    assert_eq!(parse_hex(&written), Some(hash));
    assert_eq!(parse_hex(&written.to_uppercase()), Some(hash));
    let not_hashes =
        ["", "00", &written[..63], &format!("{written}0"), &written.replace(&written[..1], "é"), &"g".repeat(64)];
    for text in not_hashes {
        assert_eq!(parse_hex(text), None, "{text}");
    }
}
