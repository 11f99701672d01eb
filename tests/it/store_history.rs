//! The metric history in the store, below the API: what must hold on every database.

use std::collections::BTreeMap;

use signalbox::audit::Actor;
use signalbox::store::history::{
    Block, BlockInfo, BlockKey, FreshSample, Hours, JournalRead, LeftOut, Outcome, Piece, PiecesTaken, SamplesTaken,
    Sealing, Span, Tier, Why,
};
use signalbox::store::{Commit, Share, Store};
use uuid::Uuid;

use crate::support::Storage;
use crate::support::rows::{owner, server};

struct Scene {
    _storage: Storage,
    store: Store,
    owner_id: Uuid,
    server_id: Uuid,
}

impl Scene {
    async fn set() -> Self {
        let storage = Storage::fresh().await;
        let store = storage.store().await;
        let owner_id = owner(&store).await;
        let server_id = server(&store, owner_id, "web-1", "tag").await;
        Self { _storage: storage, store, owner_id, server_id }
    }

    async fn journal(&self, data: &[u8]) -> i64 {
        let commit = Commit { journal: Some(data.to_vec()), ..Commit::default() };
        self.store.commit(Uuid::nil(), &commit).await.unwrap().journal.unwrap()
    }

    async fn journal_rows(&self) -> Vec<Vec<u8>> {
        self.store.journal_after(0, 100).await.unwrap().into_iter().map(|row| row.data).collect()
    }

    async fn pieces(&self, server_id: Uuid) -> Vec<Piece> {
        self.store.pieces(Hours { server_id, from: 0, until: 1_000 }).await.unwrap()
    }

    async fn blocks(&self, server_id: Uuid) -> Vec<BlockKey> {
        let infos = self.store.block_infos(Hours { server_id, from: 0, until: 100_000 }, &Tier::ALL).await.unwrap();
        let mut keys: Vec<BlockKey> = infos.into_iter().map(|info| info.key).collect();
        keys.sort_unstable();
        keys
    }

    async fn seal(&self, server_id: Uuid, blocks: Vec<Block>) {
        let sealing = Sealing { blocks, ..Sealing::of(server_id) };
        assert_eq!(self.store.seal(&[sealing]).await.unwrap(), Outcome::Written);
    }
}

/// This process has read everything that it wrote up to here.
fn read(up_to: i64) -> JournalRead {
    JournalRead { writer: Uuid::nil(), up_to, replayed_to: 0 }
}

fn piece(server_id: Uuid, hour: i64, number: i64) -> Piece {
    Piece { server_id, hour, number, samples: 3, cells: 30, data: vec![hour as u8; 50], processes: None }
}

fn block(tier: Tier, span: Span, start: i64, parts: usize) -> Block {
    let key = BlockKey { tier, span, start };
    let parts: BTreeMap<usize, Vec<u8>> = (0..parts).map(|part| (part, vec![part as u8; 5_000])).collect();
    Block { info: BlockInfo { key, rows: 60, first_at: 1, last_at: 2 }, parts }
}

#[actix_web::test]
async fn samples_move_out_of_the_journal_into_pieces() {
    let scene = Scene::set().await;
    let first = scene.journal(b"first").await;
    let second = scene.journal(b"second").await;
    assert!(first < second);

    scene.store.move_to_pieces(&read(first), vec![piece(scene.server_id, 7, first)]).await.unwrap();

    assert_eq!(scene.journal_rows().await, [b"second".to_vec()]);
    assert_eq!(scene.pieces(scene.server_id).await, [piece(scene.server_id, 7, first)]);
    let due = scene.store.unsealed(8, &[], &Share::All, 10).await.unwrap();
    assert_eq!(due.iter().map(|info| (info.hour, info.samples, info.cells)).collect::<Vec<_>>(), [(7, 3, 30)]);
    assert_eq!(scene.store.unsealed(7, &[], &Share::All, 10).await.unwrap(), []);
}

#[actix_web::test]
async fn a_move_whose_answer_was_lost_can_be_made_again() {
    let scene = Scene::set().await;
    let id = scene.journal(b"moved").await;
    let pieces = vec![piece(scene.server_id, 7, id)];

    scene.store.move_to_pieces(&read(id), pieces.clone()).await.unwrap();
    scene.store.move_to_pieces(&read(id), pieces.clone()).await.unwrap();

    assert_eq!(scene.journal_rows().await, Vec::<Vec<u8>>::new());
    assert_eq!(scene.pieces(scene.server_id).await, pieces);
}

#[actix_web::test]
async fn what_another_process_wrote_since_the_start_stays_in_the_journal() {
    let scene = Scene::set().await;
    let commit = Commit { journal: Some(b"theirs".to_vec()), ..Commit::default() };
    let theirs = scene.store.commit(Uuid::now_v7(), &commit).await.unwrap().journal.unwrap();
    let own = scene.journal(b"own").await;

    scene.store.move_to_pieces(&read(own), Vec::new()).await.unwrap();
    assert_eq!(scene.journal_rows().await, [b"theirs".to_vec()]);
    let replayed = JournalRead { writer: Uuid::nil(), up_to: own, replayed_to: theirs };
    scene.store.move_to_pieces(&replayed, Vec::new()).await.unwrap();

    assert_eq!(scene.journal_rows().await, Vec::<Vec<u8>>::new());
}

#[actix_web::test]
async fn sealing_takes_the_pieces_that_it_saw_and_no_others() {
    let scene = Scene::set().await;
    let server_id = scene.server_id;
    let pieces = vec![piece(server_id, 7, 1), piece(server_id, 7, 2), piece(server_id, 8, 1)];
    scene.store.move_to_pieces(&read(0), pieces).await.unwrap();
    scene.seal(server_id, vec![block(Tier::Raw, Span::Hour, 7, 1)]).await;
    let key = BlockKey { tier: Tier::Raw, span: Span::Hour, start: 7 };

    let sealing = Sealing {
        pieces: vec![PiecesTaken { hour: 7, up_to: 1, count: 1 }],
        replaced: vec![scene.store.replaced(key, Some(&block(Tier::Raw, Span::Hour, 7, 1)))],
        blocks: vec![block(Tier::Raw, Span::Hour, 7, 3)],
        ..Sealing::of(server_id)
    };
    assert_eq!(scene.store.seal(&[sealing]).await.unwrap(), Outcome::Written);

    assert_eq!(scene.pieces(server_id).await, [piece(server_id, 7, 2), piece(server_id, 8, 1)]);
    let kept = scene.store.blocks(server_id, (Tier::Raw, Span::Hour), (7, 7), None).await.unwrap();
    assert_eq!(kept, [block(Tier::Raw, Span::Hour, 7, 3)]);
    let some = scene.store.blocks(server_id, (Tier::Raw, Span::Hour), (7, 7), Some(&[2])).await.unwrap();
    assert_eq!(some[0].parts.keys().copied().collect::<Vec<_>>(), [2]);
}

#[actix_web::test]
async fn a_range_finds_every_block_that_reaches_into_it() {
    let scene = Scene::set().await;
    let blocks = vec![
        block(Tier::Quarter, Span::Month, 0, 1),
        block(Tier::Minute, Span::Day, 24, 1),
        block(Tier::Minute, Span::Day, 48, 1),
        block(Tier::Raw, Span::Hour, 30, 1),
        block(Tier::Raw, Span::Hour, 31, 1),
        block(Tier::Raw, Span::Hour, 32, 1),
    ];
    scene.seal(scene.server_id, blocks).await;

    let hours = Hours { server_id: scene.server_id, from: 31, until: 32 };
    let found = scene.store.block_infos(hours, &Tier::ALL).await.unwrap();

    let mut found: Vec<(Tier, i64)> = found.into_iter().map(|info| (info.key.tier, info.key.start)).collect();
    found.sort_unstable();
    assert_eq!(found, [(Tier::Raw, 31), (Tier::Minute, 24), (Tier::Quarter, 0)]);
}

#[actix_web::test]
async fn what_is_too_old_goes_and_nothing_else() {
    let scene = Scene::set().await;
    let mut blocks: Vec<Block> = (0..600).map(|hour| block(Tier::Raw, Span::Hour, hour, 1)).collect();
    blocks.extend([block(Tier::Minute, Span::Hour, 3, 1), block(Tier::Raw, Span::Day, 0, 2)]);
    scene.seal(scene.server_id, blocks).await;

    while scene.store.drop_blocks((Tier::Raw, Span::Hour), 590, &Share::All).await.unwrap() > 0 {}

    let mut expected: Vec<BlockKey> =
        (590..600).map(|start| BlockKey { tier: Tier::Raw, span: Span::Hour, start }).collect();
    expected.push(BlockKey { tier: Tier::Raw, span: Span::Day, start: 0 });
    expected.push(BlockKey { tier: Tier::Minute, span: Span::Hour, start: 3 });
    assert_eq!(scene.blocks(scene.server_id).await, expected);
}

#[actix_web::test]
async fn servers_with_many_blocks_of_a_day_are_found() {
    let scene = Scene::set().await;
    let of = async |name: &str| server(&scene.store, scene.owner_id, name, "tag").await;
    let (many, few, other_day, other_kind) =
        (of("many").await, of("few").await, of("other-day").await, of("other-kind").await);
    let hours = |tier, hours: std::ops::Range<i64>| hours.map(|hour| block(tier, Span::Hour, hour, 2)).collect();
    scene.seal(many, hours(Tier::Minute, 24..28)).await;
    scene.seal(few, hours(Tier::Minute, 24..27)).await;
    scene.seal(other_day, hours(Tier::Minute, 46..50)).await;
    scene.seal(other_kind, hours(Tier::Raw, 24..28)).await;

    let found = async |most, but: &[Uuid], share: &Share| {
        let (kind, day) = ((Tier::Minute, Span::Hour), (24, 47));
        scene.store.with_more_blocks(most, kind, day, but, share, 10).await.unwrap()
    };

    assert_eq!(found(3, &[], &Share::All).await, [many]);
    assert_eq!(found(2, &[], &Share::All).await.len(), 2);
    assert_eq!(found(2, &[many], &Share::All).await, [few]);
    assert_eq!(found(4, &[], &Share::All).await, Vec::<Uuid>::new());
    assert_eq!(found(3, &[], &Share::Of(Vec::new())).await, Vec::<Uuid>::new());
}

#[actix_web::test]
async fn a_deleted_server_loses_its_history_and_gets_none_again() {
    let scene = Scene::set().await;
    let gone = server(&scene.store, scene.owner_id, "gone", "tag").await;
    for server_id in [gone, scene.server_id] {
        let blocks = (0..700).map(|hour| block(Tier::Raw, Span::Hour, hour, 1)).collect();
        scene.seal(server_id, blocks).await;
        scene.store.move_to_pieces(&read(0), vec![piece(server_id, 7, 1)]).await.unwrap();
    }

    assert!(scene.store.delete_server(scene.owner_id, gone, Actor::command_line()).await.unwrap());
    scene.store.delete_history(gone).await.unwrap();
    scene.store.move_to_pieces(&read(0), vec![piece(gone, 8, 2)]).await.unwrap();
    scene.seal(gone, vec![block(Tier::Raw, Span::Hour, 800, 1)]).await;

    assert_eq!((scene.pieces(gone).await, scene.blocks(gone).await), (Vec::new(), Vec::new()));
    assert_eq!((scene.pieces(scene.server_id).await.len(), scene.blocks(scene.server_id).await.len()), (1, 700));
    assert!(!scene.store.delete_server(scene.owner_id, gone, Actor::command_line()).await.unwrap(), "it is gone");
    assert!(
        !scene.store.delete_server(Uuid::now_v7(), scene.server_id, Actor::command_line()).await.unwrap(),
        "it is somebody else's"
    );
}

#[actix_web::test]
async fn samples_of_servers_that_are_gone_are_left_out_of_the_table() {
    let scene = Scene::set().await;
    if !scene.store.has_sample_table() {
        return;
    }
    let (server_id, gone) = (scene.server_id, Uuid::now_v7());
    let sample = |server_id, at| FreshSample { server_id, session_id: Uuid::nil(), at, data: vec![at as u8] };
    let samples = vec![sample(server_id, 7), sample(gone, 7), sample(server_id, 3_600_000), sample(server_id, 7)];

    let commit = Commit { samples, ..Commit::default() };
    let committed = scene.store.commit(Uuid::nil(), &commit).await.unwrap();

    assert_eq!(committed.left_out, [LeftOut { server_id: gone, session_id: Uuid::nil(), why: Why::Gone }]);
    let kept = scene.store.samples(server_id, (0, i64::MAX / 2), 10).await.unwrap();
    assert_eq!(kept, [sample(server_id, 7), sample(server_id, 3_600_000)]);
    assert_eq!(scene.store.newest_samples(&[gone, server_id], i64::MAX).await.unwrap(), [sample(server_id, 3_600_000)]);
    assert_eq!(scene.store.samples(gone, (0, i64::MAX / 2), 10).await.unwrap(), []);
}

#[actix_web::test]
async fn what_another_instance_has_changed_is_not_replaced() {
    let scene = Scene::set().await;
    if !scene.store.has_sample_table() {
        return;
    }
    let server_id = scene.server_id;
    let (was, is) = (block(Tier::Minute, Span::Hour, 7, 1), block(Tier::Minute, Span::Hour, 7, 2));
    scene.seal(server_id, vec![is.clone()]).await;
    let contested = [
        // It was changed, it was not there yet, and samples that were read are gone.
        Sealing {
            replaced: vec![scene.store.replaced(was.info.key, Some(&block(Tier::Minute, Span::Hour, 7, 3)))],
            ..Sealing::of(server_id)
        },
        Sealing {
            replaced: vec![scene.store.replaced(was.info.key, None)],
            blocks: vec![was.clone()],
            ..Sealing::of(server_id)
        },
        Sealing {
            samples: vec![SamplesTaken { hour: 7, at: vec![7 * 3_600_000], left_out_after: None }],
            ..Sealing::of(server_id)
        },
        Sealing { pieces: vec![PiecesTaken { hour: 7, up_to: 1, count: 1 }], ..Sealing::of(server_id) },
    ];
    for mut sealing in contested {
        sealing.blocks.push(block(Tier::Raw, Span::Hour, 7, 1));

        let outcome = scene.store.seal(&[sealing]).await.unwrap();

        assert_eq!(outcome, Outcome::Contested);
        assert_eq!(scene.blocks(server_id).await, [is.info.key], "nothing was written");
    }
    let kept = scene.store.blocks(server_id, (Tier::Minute, Span::Hour), (7, 7), None).await.unwrap();
    assert_eq!(kept, [is]);
}
