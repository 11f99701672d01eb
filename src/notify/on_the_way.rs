//! Counts the messages on their way, and decides whether another one may start. A slow destination can keep its place for
//! minutes, so no channel, no owner and not even the shared mail server may take all places.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use crate::store::Due;

/// Messages on their way at the same time. Each takes a connection and a task.
const MAX_ON_THE_WAY: usize = 128;

/// Of them, mails: a mail server accepts fewer connections.
const MAX_MAILS: usize = 32;

/// Of them, messages of one owner.
const MAX_OF_OWNER: usize = 16;

/// Of them, messages on one channel: the newest, and those that were overtaken.
const MAX_ON_CHANNEL: usize = 4;

#[derive(Default)]
pub(super) struct OnTheWay {
    count: usize,
    mails: usize,
    owners: HashMap<Uuid, usize>,
    channels: HashMap<Uuid, usize>,
    /// The channels whose next message waits for the one on its way.
    held: HashSet<Uuid>,
}

impl OnTheWay {
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns whether a message may be sent now. If not, the end of another message makes room.
    pub fn has_room(&self, due: &Due) -> bool {
        !self.held.contains(&due.channel_id)
            && of(&self.channels, due.channel_id) < MAX_ON_CHANNEL
            && of(&self.owners, due.owner_id) < MAX_OF_OWNER
            && self.count < MAX_ON_THE_WAY
            && (!due.is_mail || self.mails < MAX_MAILS)
    }

    pub fn begin(&mut self, due: &Due) {
        self.held.insert(due.channel_id);
        self.count += 1;
        self.mails += usize::from(due.is_mail);
        *self.owners.entry(due.owner_id).or_default() += 1;
        *self.channels.entry(due.channel_id).or_default() += 1;
    }

    /// The next message on its channel no longer waits for it.
    pub fn overtake(&mut self, due: &Due) {
        self.held.remove(&due.channel_id);
    }

    /// Records the end of a message. `was_overtaken` says whether [`Self::overtake`] was called for it.
    pub fn end(&mut self, due: &Due, was_overtaken: Overtaken) {
        if was_overtaken == Overtaken::No {
            self.held.remove(&due.channel_id);
        }
        self.count = self.count.saturating_sub(1);
        self.mails = self.mails.saturating_sub(usize::from(due.is_mail));
        less(&mut self.owners, due.owner_id);
        less(&mut self.channels, due.channel_id);
    }
}

/// Whether the next message may start before the current one has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overtaken {
    Yes,
    No,
}

fn of(counts: &HashMap<Uuid, usize>, id: Uuid) -> usize {
    counts.get(&id).copied().unwrap_or_default()
}

fn less(counts: &mut HashMap<Uuid, usize>, id: Uuid) {
    let left = of(counts, id).saturating_sub(1);
    if left == 0 {
        counts.remove(&id);
    } else {
        counts.insert(id, left);
    }
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::Timestamp;

    use super::*;

    fn due(channel: u128, owner: u128, is_mail: bool) -> Due {
        let (channel_id, owner_id) = (Uuid::from_u128(channel), Uuid::from_u128(owner));
        Due { channel_id, owner_id, is_mail, at: Timestamp::from_millis(0), is_held: false }
    }

    #[test]
    fn a_channel_waits_until_overtaken_and_has_a_bounded_number_of_messages() {
        let (mut places, slow) = (OnTheWay::default(), due(1, 1, false));
        let mut begun = 0;
        while places.has_room(&slow) {
            places.begin(&slow);
            assert!(!places.has_room(&slow));
            places.overtake(&slow);
            begun += 1;
        }

        assert_eq!(begun, MAX_ON_CHANNEL);
        places.end(&slow, Overtaken::Yes);
        assert!(places.has_room(&slow));
        (1..begun).for_each(|_| places.end(&slow, Overtaken::Yes));
        assert!(places.is_empty() && places.owners.is_empty() && places.channels.is_empty() && places.held.is_empty());
    }

    #[test]
    fn the_end_of_an_overtaken_message_does_not_release_the_one_after_the_next() {
        let (mut places, slow) = (OnTheWay::default(), due(1, 1, false));
        places.begin(&slow);
        places.overtake(&slow);
        places.begin(&slow);

        places.end(&slow, Overtaken::Yes);

        assert!(!places.has_room(&slow));
    }

    #[test]
    fn one_owner_leaves_room_for_others() {
        let mut places = OnTheWay::default();
        let begun = (0..1_000).map(|n| due(n, 1, false)).filter(|due| {
            let has_room = places.has_room(due);
            if has_room {
                places.begin(due);
            }
            has_room
        });

        assert_eq!(begun.count(), MAX_OF_OWNER);
        assert!(places.has_room(&due(2_000, 2, false)));
    }

    #[test]
    fn mails_leave_room_for_requests() {
        let mut places = OnTheWay::default();
        for n in 0..1_000 {
            let mail = due(n, n, true);
            if places.has_room(&mail) {
                places.begin(&mail);
            }
        }

        assert_eq!(places.count, MAX_MAILS);
        assert!(places.has_room(&due(2_000, 1, false)) && !places.has_room(&due(2_000, 2_000, true)));
    }
}
