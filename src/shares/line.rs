//! The line in front of a pool's places, in which every share waits behind itself. It decides who is next, and nothing
//! else.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use super::share::{Part, Share};
use super::turns::{Turns, Want};

/// The size of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many callers may be inside at the same time.
    pub places: usize,
    /// How many callers may wait.
    pub waiting: usize,
    pub stay: Stay,
}

/// How long callers stay inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// So briefly that the next one hardly waits: a share may have every place.
    Brief,
    /// As long as they like: a share gets no more places than are left for others, so that newcomers always find one
    /// (Choudhury and Hahne, "Dynamic queue length thresholds", 1998).
    Long,
}

/// A waiting caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(u64);

/// What happens to a newcomer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    Enters,
    /// It waits, and displaces `displaced` if the line was full.
    Waits {
        ticket: Ticket,
        displaced: Option<Ticket>,
    },
    /// The line is full, and no other share has more in it.
    Refused,
}

#[derive(Debug)]
pub struct Line {
    limits: Limits,
    inside: usize,
    /// How many callers of each share are inside.
    held: HashMap<Share, usize>,
    /// Identified callers, and all others: the two groups take turns.
    known: Turns<Share, Party>,
    strangers: Turns<Share, Party>,
    was_known: bool,
    /// The positions of the waiting callers.
    tickets: HashMap<Ticket, (Share, Part)>,
    next_ticket: u64,
}

/// The waiting callers of a share, by part.
type Party = Group<Group<VecDeque<Ticket>>>;

/// Queues that take turns, and how many callers wait in them.
#[derive(Debug)]
struct Group<Q> {
    turns: Turns<u64, Q>,
    len: usize,
}

impl<Q> Default for Group<Q> {
    fn default() -> Self {
        Self { turns: Turns::default(), len: 0 }
    }
}

/// A queue, whose length is the number of its waiting callers.
trait Length: Default {
    fn length(&self) -> usize;
}

impl Length for VecDeque<Ticket> {
    fn length(&self) -> usize {
        self.len()
    }
}

impl<Q> Length for Group<Q> {
    fn length(&self) -> usize {
        self.len
    }
}

impl<Q: Length> Group<Q> {
    /// The longest queue and its length.
    fn longest(&self) -> Option<(u64, usize)> {
        self.turns.iter().map(|(key, queue)| (*key, queue.length())).max_by_key(|(_, length)| *length)
    }

    fn length_of(&self, key: u64) -> usize {
        self.turns.get(&key).map_or(0, Q::length)
    }

    /// The queue whose turn it is.
    fn next(&mut self) -> Option<&mut Q> {
        let want = |_: &u64, queue: &Q| if queue.length() == 0 { Want::Nothing } else { Want::Turn };
        self.turns.next(want).map(|(_, queue)| queue)
    }
}

impl Line {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            inside: 0,
            held: HashMap::new(),
            known: Turns::default(),
            strangers: Turns::default(),
            was_known: false,
            tickets: HashMap::new(),
            next_ticket: 0,
        }
    }

    /// A caller of a share arrives. Parts of a share take turns among themselves.
    pub fn arrive(&mut self, share: Share, part: Part) -> Arrival {
        // Overtakes nobody: callers that may enter do so as soon as there is a place.
        if self.may_enter(&share) {
            self.enter(share);
            return Arrival::Enters;
        }
        let mut displaced = None;
        if self.tickets.len() >= self.limits.waiting {
            displaced = self.displace(share, part);
            if displaced.is_none() {
                return Arrival::Refused;
            }
        }
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let party = self.lane(share).queue(share);
        party.len += 1;
        let group = party.turns.queue(part.part);
        group.len += 1;
        group.turns.queue(part.within).push_back(ticket);
        self.tickets.insert(ticket, (share, part));
        Arrival::Waits { ticket, displaced }
    }

    /// A caller of a share arrives that does not wait. Returns whether it entered.
    pub fn enter_now(&mut self, share: Share) -> bool {
        let may_enter = self.may_enter(&share);
        if may_enter {
            self.enter(share);
        }
        may_enter
    }

    /// A caller of a share leaves. [`Self::admit`] then returns the next one.
    pub fn leave(&mut self, share: Share) {
        self.inside = self.inside.saturating_sub(1);
        if let Some(held) = self.held.get_mut(&share) {
            *held = held.saturating_sub(1);
            if *held == 0 {
                self.held.remove(&share);
            }
        }
    }

    /// Counts a caller inside for another share from now on, however many that share has.
    pub fn change(&mut self, from: Share, to: Share) {
        self.leave(from);
        self.enter(to);
    }

    /// Admits the next caller; `None` if none may enter.
    pub fn admit(&mut self) -> Option<(Ticket, Share)> {
        let Self { limits, inside, held, known, strangers, was_known, .. } = &mut *self;
        let free = Free { limits: *limits, inside: *inside };
        let want = |share: &Share, party: &Party| match party.len {
            0 => Want::Nothing,
            _ if free.has_one_for(held.get(share).copied().unwrap_or_default()) => Want::Turn,
            _ => Want::Later,
        };
        let lanes = if *was_known { [(strangers, false), (known, true)] } else { [(known, true), (strangers, false)] };
        let (share, party) = lanes.into_iter().find_map(|(lane, is_known)| {
            let next = lane.next(want)?;
            *was_known = is_known;
            Some(next)
        })?;
        let group = party.next()?;
        let ticket = group.next().and_then(VecDeque::pop_front)?;
        group.len -= 1;
        party.len -= 1;
        self.tickets.remove(&ticket);
        self.forget_if_empty();
        self.enter(share);
        Some((ticket, share))
    }

    /// A waiting caller leaves the line. Does nothing if it does not wait any more.
    pub fn cancel(&mut self, ticket: Ticket) {
        let Some((share, part)) = self.tickets.remove(&ticket) else { return };
        let lane = self.lane(share);
        if let Some(party) = lane.get_mut(&share)
            && let Some(group) = party.turns.get_mut(&part.part)
            && let Some(queue) = group.turns.get_mut(&part.within)
            && let Some(index) = queue.iter().position(|waiting| *waiting == ticket)
        {
            queue.remove(index);
            group.len -= 1;
            party.len -= 1;
            // From the inside out, so that callers that come and go with new names are not remembered.
            if queue.is_empty() {
                group.turns.forget_fresh(&part.within);
            }
            if group.len == 0 {
                party.turns.forget_fresh(&part.part);
            }
            if party.len == 0 {
                lane.forget_fresh(&share);
            }
        }
        self.forget_if_empty();
    }

    pub fn inside(&self) -> usize {
        self.inside
    }

    pub fn waiting(&self) -> usize {
        self.tickets.len()
    }

    /// Shares that are remembered for any reason.
    pub fn remembered(&self) -> usize {
        self.held.len() + self.known.remembered() + self.strangers.remembered()
    }

    fn lane(&mut self, share: Share) -> &mut Turns<Share, Party> {
        match share {
            Share::Known(_) => &mut self.known,
            Share::Service | Share::Host(_) | Share::Account(_) => &mut self.strangers,
        }
    }

    fn party(&self, share: Share) -> Option<&Party> {
        self.known.get(&share).or_else(|| self.strangers.get(&share))
    }

    fn may_enter(&self, share: &Share) -> bool {
        let free = Free { limits: self.limits, inside: self.inside };
        free.has_one_for(self.held.get(share).copied().unwrap_or_default())
    }

    fn enter(&mut self, share: Share) {
        self.inside += 1;
        *self.held.entry(share).or_default() += 1;
    }

    /// Displaces the last newcomer of the longest queue: of the longest share, of its longest part, and of the longest
    /// part of that. Does so only if more callers wait there than would wait with the newcomer.
    fn displace(&mut self, share: Share, part: Part) -> Option<Ticket> {
        let parties = self.known.iter().chain(self.strangers.iter());
        let (longest, length) = parties.map(|(share, party)| (*share, party.len)).max_by_key(|(_, len)| *len)?;
        let own = self.party(share).map_or(0, |party| party.len);
        let is_foreign = length > own + 1;
        let party = self.party(if is_foreign { longest } else { share })?;
        let (longest, length) = party.longest()?;
        let is_other = is_foreign || length > party.length_of(part.part) + 1;
        let group = party.turns.get(if is_other { &longest } else { &part.part })?;
        let (longest, length) = group.longest()?;
        if !is_other && length <= group.length_of(part.within) + 1 {
            return None;
        }
        let last = group.turns.get(&longest)?.back().copied()?;
        self.cancel(last);
        Some(last)
    }

    /// Recent turns matter only while callers wait.
    fn forget_if_empty(&mut self) {
        if self.tickets.is_empty() {
            self.known.clear();
            self.strangers.clear();
        }
    }
}

/// The free places.
struct Free {
    limits: Limits,
    inside: usize,
}

impl Free {
    /// Whether there is a place for another caller of a share that has `held` callers inside.
    fn has_one_for(&self, held: usize) -> bool {
        let free = self.limits.places.saturating_sub(self.inside);
        match self.limits.stay {
            Stay::Brief => free > 0,
            Stay::Long => free > held,
        }
    }
}
