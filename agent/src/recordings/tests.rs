//! The files and the thread.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use signalbox_protocol::agent::{AgentMessage, RecordingPiece, RecordingsListed, TerminalRecorded};
use tempfile::TempDir;

use super::*;
use crate::policy::Policy;
use crate::text::hex;

const ID: Uuid = Uuid::from_u128(7);
const SIZE: TerminalSize = TerminalSize { columns: 80, rows: 24 };

struct Scene {
    state: TempDir,
    config: Config,
}

impl Scene {
    fn new(limits: RecordingLimits) -> Self {
        let policy = Policy { record: Switch::On, terminal: Switch::On.into(), ..Policy::default() };
        let config = Config { policy, recordings: limits, ..Config::default() };
        Self { state: tempfile::tempdir_in("/dev/shm").unwrap(), config }
    }

    fn open(&self) -> Recordings {
        Recordings::open(&self.config, Some(StateDir::new(self.state.path())))
    }

    fn file(&self, id: Uuid, extension: &str) -> PathBuf {
        self.state.path().join("recordings").join(format!("{id}.{extension}"))
    }

    fn text(&self, id: Uuid) -> String {
        fs::read_to_string(self.file(id, "cast")).unwrap()
    }

    fn sha256(&self, id: Uuid) -> String {
        hex(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, self.text(id).as_bytes()).as_ref())
    }
}

async fn begin(recordings: &Recordings, id: Uuid) -> Recording {
    recordings.begin(id, SIZE, "ada from ::1").await.unwrap().expect("a recording")
}

/// A terminal that shows this and ends.
async fn record(recordings: &Recordings, id: Uuid, text: &str) {
    begin(recordings, id).await.output(text).await.unwrap();
}

async fn list(recordings: &Recordings, offset: u64, limit: u32) -> (Vec<u128>, u64) {
    let params = json!({"limit": limit, "offset": offset});
    let answer = recordings.clone().list(params).await.unwrap();
    let listed: RecordingsListed = serde_json::from_value(answer).unwrap();
    (listed.recordings.iter().map(|recorded| recorded.stream_id.as_u128()).collect(), listed.total)
}

async fn piece(recordings: &Recordings, id: Uuid, offset: u64) -> Result<RecordingPiece, RequestError> {
    let params = json!({"recording_id": id, "offset": offset});
    let answer = recordings.clone().read(params, None).await?;
    Ok(serde_json::from_value(answer).unwrap())
}

async fn reported(uplink: &mut ReportsUplink) -> TerminalRecorded {
    match timeout(PATIENCE, uplink.next()).await.expect("a report") {
        AgentMessage::TerminalRecorded(recorded) => recorded,
        other => panic!("{other:?}"),
    }
}

/// The permissions of a path.
fn mode(path: PathBuf) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_terminal_is_recorded_from_its_beginning_and_reported_with_its_hash() {
    let scene = Scene::new(RecordingLimits::default());
    let recordings = scene.open();
    let mut uplink = recordings.uplink();

    let recording = begin(&recordings, ID).await;
    recording.output("$ ").await.unwrap();
    recording.resized(TerminalSize { columns: 132, rows: 43 }).await.unwrap();
    recording.output("grüße\r\n").await.unwrap();
    drop(recording);
    let recorded = reported(&mut uplink).await;

    let text = scene.text(ID);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(lines[0].contains(r#""width":80,"height":24,"timestamp":"#) && lines[0].contains(r#""by":"ada from ::1""#));
    assert!(lines[1].ends_with(r#", "o", "$ "]"#), "{text}");
    assert!(lines[2].ends_with(r#", "r", "132x43"]"#), "{text}");
    assert!(lines[3].ends_with(r#", "o", "grüße\r\n"]"#), "{text}");
    assert_eq!((recorded.stream_id, recorded.by.as_str(), recorded.interrupted), (ID, "ada from ::1", false));
    assert_eq!((recorded.bytes, recorded.sha256), (text.len() as u64, scene.sha256(ID)));
    assert_eq!(mode(scene.file(ID, "cast")), 0o600);
    assert_eq!(mode(scene.file(ID, "json")), 0o600);
    assert_eq!(mode(scene.state.path().join("recordings")), 0o700);
    let whole = piece(&recordings, ID, 0).await.unwrap();
    assert_eq!(whole, RecordingPiece { data: text.clone(), bytes: text.len() as u64 });
    assert_eq!(piece(&recordings, ID, 2).await.unwrap().data, text[2..]);
}

#[tokio::test]
async fn a_terminal_whose_recording_reaches_its_limit_gets_an_error_and_the_file_stays_whole() {
    let limits = RecordingLimits { one_bytes: 200, ..RecordingLimits::default() };
    let scene = Scene::new(limits);
    let recordings = scene.open();
    let recording = begin(&recordings, ID).await;

    recording.output("short").await.unwrap();
    let error = recording.output(&"x".repeat(200)).await.unwrap_err();
    drop(recording);
    let recorded = reported(&mut recordings.uplink()).await;

    assert!(matches!(error, RecordError::TooLong(200)), "{error}");
    assert!(scene.text(ID).ends_with("\"short\"]\n"), "{}", scene.text(ID));
    assert_eq!(recorded.sha256, scene.sha256(ID));
}

#[tokio::test]
async fn without_a_file_there_is_no_recording_and_with_one_no_second() {
    let scene = Scene::new(RecordingLimits::default());
    // In place of the directory.
    fs::write(scene.state.path().join("recordings"), "").unwrap();
    let recordings = scene.open();
    let refused = recordings.begin(ID, SIZE, "ada").await;
    assert!(matches!(refused, Err(RecordError::Io(_))));

    fs::remove_file(scene.state.path().join("recordings")).unwrap();
    record(&recordings, ID, "first").await;
    let again = recordings.begin(ID, SIZE, "ada").await;

    assert!(matches!(again, Err(RecordError::Exists)));
    assert!(scene.text(ID).contains("first"));
    let nowhere = Recordings::open(&scene.config, None).begin(ID, SIZE, "ada").await;
    assert!(matches!(nowhere, Err(RecordError::Io(_))));
}

#[tokio::test]
async fn a_state_directory_that_cannot_be_used_is_used_as_soon_as_it_can_be() {
    let scene = Scene::new(RecordingLimits::default());
    // In place of the lock.
    let lock = scene.state.path().join("lock");
    fs::create_dir(&lock).unwrap();
    let recordings = scene.open();
    let refused = recordings.begin(ID, SIZE, "ada").await;
    assert!(matches!(refused, Err(RecordError::Io(_))));

    fs::remove_dir(lock).unwrap();
    record(&recordings, ID, "first").await;

    assert!(scene.text(ID).contains("first"));
}

/// In the environment of the process whose files stay small.
const SMALL_FILES: &str = "SIGNALBOX_TEST_SMALL_FILES";

#[tokio::test]
async fn a_write_that_fails_halfway_leaves_whole_lines_and_the_recording_can_continue() {
    if std::env::var_os(SMALL_FILES).is_none() {
        let (_, module) = module_path!().split_once("::").unwrap();
        let name = format!("{module}::a_write_that_fails_halfway_leaves_whole_lines_and_the_recording_can_continue");
        // The limit is for all threads of a process. 8 blocks are 4 KiB, and what exceeds it is an error instead of a signal.
        let mut limited = Command::new("sh");
        limited.args(["-c", "trap '' XFSZ && ulimit -f 8 && exec \"$@\"", "sh"]);
        limited.arg(std::env::current_exe().unwrap()).args(["--exact", &name]).env(SMALL_FILES, "1");
        let ran = limited.output().unwrap();
        let printed = String::from_utf8_lossy(&ran.stdout);
        return assert!(ran.status.success() && printed.contains("1 passed"), "{printed}");
    }
    let scene = Scene::new(RecordingLimits::default());
    let recordings = scene.open();
    let recording = begin(&recordings, ID).await;
    recording.output("short").await.unwrap();
    let whole = scene.text(ID);

    let error = recording.output(&"x".repeat(8 * 1024)).await.unwrap_err();
    let repaired = scene.text(ID);
    recording.output("after").await.unwrap();
    drop(recording);
    let recorded = reported(&mut recordings.uplink()).await;

    assert!(matches!(&error, RecordError::Io(error) if error.kind() == io::ErrorKind::FileTooLarge), "{error}");
    assert_eq!(repaired, whole);
    assert!(scene.text(ID).starts_with(&whole) && scene.text(ID).ends_with("\"after\"]\n"), "{}", scene.text(ID));
    assert_eq!(recorded.sha256, scene.sha256(ID));
}

#[tokio::test]
async fn the_oldest_make_room_for_new_ones_and_open_ones_stay() {
    let scene = Scene::new(RecordingLimits { one_bytes: 300, all_bytes: 900, count: 100 });
    let recordings = scene.open();
    let oldest = begin(&recordings, Uuid::from_u128(1)).await;
    for number in 2..=8 {
        record(&recordings, Uuid::from_u128(number), &"x".repeat(100)).await;
    }

    // 300 bytes are for the open one, 300 for the next one.
    assert_eq!(list(&recordings, 0, 10).await, (vec![8, 7], 2));
    assert!(!scene.file(Uuid::from_u128(6), "cast").exists() && !scene.file(Uuid::from_u128(6), "json").exists());
    oldest.output("still here").await.unwrap();
    drop(oldest);
    assert_eq!(list(&recordings, 1, 1).await.0.len(), 1);
    assert_eq!(list(&recordings, 0, 10).await.1, 3);
    assert!(scene.text(Uuid::from_u128(1)).contains("still here"));
}

#[tokio::test]
async fn there_are_only_so_many_recordings() {
    let scene = Scene::new(RecordingLimits { count: 3, ..RecordingLimits::default() });
    let recordings = scene.open();

    for number in 1..=5 {
        record(&recordings, Uuid::from_u128(number), "x").await;
    }

    assert_eq!(list(&recordings, 0, 10).await, (vec![5, 4, 3], 3));
    recordings.stop().await;
    let scene = Scene {
        config: Config { recordings: RecordingLimits { count: 2, ..scene.config.recordings }, ..scene.config },
        ..scene
    };
    assert_eq!(list(&scene.open(), 0, 10).await, (vec![5, 4], 2));
}

#[tokio::test]
async fn what_a_killed_agent_left_is_ended_at_the_next_start_after_its_last_whole_line() {
    let scene = Scene::new(RecordingLimits::default());
    let recordings = scene.open();
    for number in [1, 2] {
        record(&recordings, Uuid::from_u128(number), "shown").await;
    }
    recordings.stop().await;
    // As if the agent had been killed: nothing says that they ended.
    let (cut, empty) = (Uuid::from_u128(1), Uuid::from_u128(2));
    fs::remove_file(scene.file(cut, "json")).unwrap();
    let whole = scene.text(cut);
    fs::write(scene.file(cut, "cast"), format!("{whole}[3.25, \"o\", \"cut o")).unwrap();
    fs::remove_file(scene.file(empty, "json")).unwrap();
    fs::write(scene.file(empty, "cast"), "{\"version\":2").unwrap();

    let recordings = scene.open();
    let recorded = reported(&mut recordings.uplink()).await;

    assert_eq!((recorded.stream_id, recorded.interrupted, recorded.bytes), (cut, true, whole.len() as u64));
    assert_eq!((scene.text(cut), recorded.sha256), (whole, scene.sha256(cut)));
    assert!(!scene.file(empty, "cast").exists(), "what says nothing is removed");
    assert_eq!(list(&recordings, 0, 10).await, (vec![1], 1));
}

#[tokio::test]
async fn a_recording_is_reported_again_after_a_restart_until_the_service_has_noted_it() {
    let scene = Scene::new(RecordingLimits::default());
    let recordings = scene.open();
    record(&recordings, Uuid::from_u128(1), "x").await;
    record(&recordings, Uuid::from_u128(2), "x").await;
    let first = reported(&mut recordings.uplink()).await;
    recordings.noted(first.stream_id);
    // Behind it in the queue.
    assert_eq!(list(&recordings, 0, 10).await.1, 2);
    recordings.stop().await;

    let recordings = scene.open();
    let again = reported(&mut recordings.uplink()).await;

    assert_eq!((first.stream_id.as_u128(), again.stream_id.as_u128()), (1, 2));
    assert_eq!(again.sha256, scene.sha256(again.stream_id));
}

#[tokio::test]
async fn the_hash_is_of_what_the_agent_wrote_whatever_somebody_makes_of_the_file() {
    let scene = Scene::new(RecordingLimits::default());
    let recordings = scene.open();
    let recording = begin(&recordings, ID).await;
    recording.output("the deed").await.unwrap();
    let written = scene.sha256(ID);

    fs::write(scene.file(ID, "cast"), scene.text(ID).replace("deed", "tale")).unwrap();
    drop(recording);
    let recorded = reported(&mut recordings.uplink()).await;

    assert_eq!(recorded.sha256, written);
    assert_ne!(scene.sha256(ID), written);
    // A link leads nowhere, and a pipe is not waited for.
    fs::remove_file(scene.file(ID, "cast")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", scene.file(ID, "cast")).unwrap();
    assert_eq!(piece(&recordings, ID, 0).await.unwrap_err().code, "agent_error");
    fs::remove_file(scene.file(ID, "cast")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, scene.file(ID, "cast"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    assert_eq!(piece(&recordings, ID, 0).await.unwrap_err().detail, "it is not a file");
    fs::remove_file(scene.file(ID, "cast")).unwrap();
    assert_eq!(piece(&recordings, ID, 0).await.unwrap_err().code, "not_found");
    assert_eq!(list(&recordings, 0, 10).await, (vec![], 0));
}

#[tokio::test]
async fn a_long_recording_is_read_in_pieces_that_cut_no_character() {
    let scene = Scene::new(RecordingLimits::default());
    let recordings = scene.open();
    let recording = begin(&recordings, ID).await;
    for _ in 0..30 {
        recording.output(&"ü".repeat(8 * 1024)).await.unwrap();
    }
    drop(recording);

    let mut text = String::new();
    loop {
        let piece = piece(&recordings, ID, text.len() as u64).await.unwrap();
        if piece.data.is_empty() {
            break;
        }
        assert!(piece.data.len() <= 128 * 1024);
        text.push_str(&piece.data);
    }

    assert_eq!(text, scene.text(ID));
}

#[tokio::test]
async fn only_the_people_of_the_policy_read_and_without_recordings_nobody() {
    let mut scene = Scene::new(RecordingLimits::default());
    scene.config.policy = Policy::parse("terminal = [\"ada\"]\nrecord = \"on\"\n").unwrap();
    let recordings = scene.open();
    record(&recordings, ID, "x").await;
    let read_by = async |user: &str| {
        let asker = Asker { user: user.to_owned(), teams: Vec::new() };
        let params = json!({"recording_id": ID, "asker": asker});
        recordings.clone().read(params, None).await.map_err(|error| error.detail)
    };

    assert!(read_by("Ada").await.is_ok());
    let refused = "this agent shows recordings of terminals for ada only".to_owned();
    assert_eq!(read_by("ben").await.unwrap_err(), refused);
    scene.config.policy.record = Switch::Off;
    let off = Recordings::open(&scene.config, Some(StateDir::new(scene.state.path())));
    assert!(off.begin(Uuid::from_u128(8), SIZE, "ada").await.unwrap().is_none());
    let error = off.list(json!({"limit": 1})).await.unwrap_err();
    assert_eq!((error.code.as_str(), error.detail.as_str()), ("agent_refused", "this agent does not record terminals"));
}
