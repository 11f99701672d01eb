use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn share(number: u64) -> Share {
    Share::Host(number)
}

fn line(places: usize, waiting: usize, stay: Stay) -> Line {
    Line::new(Limits { places, waiting, stay })
}

fn part(number: u64) -> Part {
    Part { part: number, within: 0 }
}

/// Admits the next caller after one of the share `leaving` has left.
fn next_after(line: &mut Line, leaving: Share) -> Option<(Ticket, Share)> {
    line.leave(leaving);
    line.admit()
}

/// The next two callers, each of which leaves immediately.
fn next_two(line: &mut Line, leaving: Share) -> [Ticket; 2] {
    let (first, entered) = next_after(line, leaving).unwrap();
    let (second, _) = next_after(line, entered).unwrap();
    [first, second]
}

fn waits(arrival: Arrival) -> Ticket {
    match arrival {
        Arrival::Waits { ticket, displaced: None } => ticket,
        other => panic!("it should wait: {other:?}"),
    }
}

#[test]
fn the_first_to_come_to_a_free_place_enters() {
    let mut line = line(2, 0, Stay::Brief);

    assert_eq!(line.arrive(share(1), part(0)), Arrival::Enters);
    assert_eq!(line.arrive(share(1), part(0)), Arrival::Enters);
    assert_eq!(line.arrive(share(2), part(0)), Arrival::Refused);
}

#[test]
fn an_honest_share_waits_for_at_most_one_turn_during_a_flood() {
    let (flood, honest) = (share(1), share(2));
    let mut line = line(1, 200, Stay::Brief);
    line.arrive(flood, part(0));
    for number in 0..100 {
        waits(line.arrive(flood, part(number)));
    }
    next_after(&mut line, flood).unwrap();

    let ticket = waits(line.arrive(honest, part(0)));

    assert!(next_two(&mut line, flood).contains(&ticket));
}

#[test]
fn an_honest_share_comes_before_many_that_return_repeatedly() {
    let mut line = line(1, 500, Stay::Brief);
    line.arrive(share(0), part(0));
    for attacker in 0..100 {
        waits(line.arrive(share(attacker), part(0)));
    }
    let mut inside = share(0);
    for _ in 0..300 {
        let (_, entered) = next_after(&mut line, inside).unwrap();
        inside = entered;
        waits(line.arrive(inside, part(0)));
    }

    let ticket = waits(line.arrive(share(1_000), part(0)));

    assert!(next_two(&mut line, inside).contains(&ticket));
}

#[test]
fn identified_callers_take_turns_with_all_others() {
    let mut line = line(1, 500, Stay::Brief);
    line.arrive(share(0), part(0));
    let mut inside = share(0);
    let mut of_known = 0;
    for number in 0..100 {
        waits(line.arrive(share(number), part(0)));
        waits(line.arrive(share(7).known(), part(0)));
    }

    for _ in 0..100 {
        let (_, entered) = next_after(&mut line, inside).unwrap();
        inside = entered;
        of_known += u32::from(entered == share(7).known());
        // Unidentified callers return repeatedly.
        waits(line.arrive(share(200), part(0)));
    }

    assert_eq!(of_known, 50);
}

#[test]
fn a_known_caller_waits_for_one_turn_even_after_being_served_before() {
    let mut line = line(1, 500, Stay::Brief);
    let (known, mut inside) = (share(7).known(), share(0));
    line.arrive(inside, part(0));
    for stranger in 0..100 {
        waits(line.arrive(share(stranger), part(0)));
    }

    for _ in 0..50 {
        let ticket = waits(line.arrive(known, part(0)));
        let mut waited = 0;
        loop {
            let (entering, entered) = next_after(&mut line, inside).unwrap();
            inside = entered;
            if entering == ticket {
                break;
            }
            waited += 1;
            waits(line.arrive(entered, part(0)));
        }

        assert!(waited <= 1, "{waited} turns");
    }
}

#[test]
fn callers_that_come_and_go_with_new_names_are_not_remembered() {
    let mut line = line(1, 500, Stay::Brief);
    line.arrive(share(0), part(0));
    waits(line.arrive(share(1), part(0)));

    for number in 0..1_000 {
        let ticket = waits(line.arrive(share(number % 3), Part { part: number, within: number }));
        line.cancel(ticket);
    }

    let parts = line.party(share(1)).unwrap().turns.remembered();
    assert!(parts == 1 && line.remembered() <= 3, "{parts} parts, {} in all", line.remembered());
}

#[test]
fn parts_of_a_share_take_turns() {
    let address = share(1);
    let mut line = line(1, 200, Stay::Brief);
    line.arrive(address, part(7));
    for _ in 0..50 {
        waits(line.arrive(address, part(7)));
    }
    next_after(&mut line, address).unwrap();

    let ticket = waits(line.arrive(address, part(8)));

    assert!(next_two(&mut line, address).contains(&ticket));
}

#[test]
fn parts_of_a_part_take_turns() {
    let address = share(1);
    let mut line = line(1, 200, Stay::Brief);
    line.arrive(address, part(0));
    for _ in 0..50 {
        waits(line.arrive(address, Part { part: 7, within: 1 }));
    }
    next_after(&mut line, address).unwrap();

    let ticket = waits(line.arrive(address, Part { part: 7, within: 2 }));

    assert!(next_two(&mut line, address).contains(&ticket));
}

#[test]
fn a_full_line_displaces_the_last_of_the_longest_share() {
    let (flood, other, newcomer) = (share(1), share(2), share(3));
    let mut line = line(1, 4, Stay::Brief);
    line.arrive(other, part(0));
    let first = waits(line.arrive(other, part(0)));
    let flooding: Vec<Ticket> = (0..3).map(|_| waits(line.arrive(flood, part(0)))).collect();

    let refused = line.arrive(flood, part(0));
    let Arrival::Waits { displaced, .. } = line.arrive(newcomer, part(0)) else { panic!("the newcomer is refused") };

    assert_eq!(refused, Arrival::Refused);
    assert_eq!(displaced, flooding.last().copied());
    assert_eq!(line.waiting(), 4);
    assert!(line.tickets.contains_key(&first));
}

#[test]
fn within_a_share_the_longest_part_gives_way() {
    let address = share(1);
    let mut line = line(1, 3, Stay::Brief);
    line.arrive(address, part(7));
    let guessing: Vec<Ticket> = (0..3).map(|_| waits(line.arrive(address, part(7)))).collect();

    let Arrival::Waits { displaced, .. } = line.arrive(address, part(8)) else { panic!("the neighbour is refused") };

    assert_eq!(displaced, guessing.last().copied());
}

#[test]
fn callers_that_stay_leave_a_place_for_others() {
    let mut line = line(16, 100, Stay::Long);
    let entered = (0..16).filter(|_| line.arrive(share(1), part(0)) == Arrival::Enters).count();

    let others: Vec<Arrival> = (2..5).map(|other| line.arrive(share(other), part(0))).collect();

    assert_eq!(entered, 8);
    assert_eq!(others, [Arrival::Enters; 3]);
}

#[test]
fn a_caller_that_waits_for_its_own_share_enters_when_another_of_it_leaves() {
    let (greedy, other) = (share(1), share(2));
    let mut line = line(4, 10, Stay::Long);
    line.arrive(greedy, part(0));
    line.arrive(greedy, part(0));
    let ticket = waits(line.arrive(greedy, part(0)));

    assert_eq!(line.arrive(other, part(0)), Arrival::Enters);
    assert_eq!(next_after(&mut line, other), None);
    assert_eq!(next_after(&mut line, greedy), Some((ticket, greedy)));
}

#[test]
fn a_caller_that_changes_its_share_frees_the_old_one() {
    let (address, agents) = (share(1), Share::Service);
    let mut line = line(4, 0, Stay::Long);
    line.arrive(address, part(0));
    line.arrive(address, part(0));
    assert_eq!(line.arrive(address, part(0)), Arrival::Refused);

    line.change(address, agents);

    assert_eq!(line.arrive(address, part(0)), Arrival::Enters);
    assert_eq!(line.inside(), 3);
}

/// A step in the life of a line.
#[derive(Debug, Clone)]
enum Step {
    Arrive(u64, Part),
    /// A caller inside leaves.
    Leave(usize),
    /// A waiting caller leaves.
    Cancel(usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..5_u64, 0..3_u64, 0..2_u64).prop_map(|(share, part, within)| Step::Arrive(share, Part { part, within })),
        2 => any::<usize>().prop_map(Step::Leave),
        1 => any::<usize>().prop_map(Step::Cancel),
    ]
}

/// The callers inside and in front of a line, as its users see it.
struct Scene {
    line: Line,
    inside: Vec<Share>,
    waiting: Vec<(Ticket, Share)>,
    served: BTreeSet<Ticket>,
}

impl Scene {
    fn take(&mut self, step: &Step) {
        match *step {
            Step::Arrive(number, part) => match self.line.arrive(share(number), part) {
                Arrival::Enters => self.inside.push(share(number)),
                Arrival::Refused => assert_eq!(self.line.waiting(), self.line.limits.waiting),
                Arrival::Waits { ticket, displaced } => {
                    let before = self.waiting.len();
                    self.waiting.retain(|(waiting, _)| Some(*waiting) != displaced);
                    assert_eq!(before - self.waiting.len(), usize::from(displaced.is_some()));
                    self.waiting.push((ticket, share(number)));
                }
            },
            Step::Leave(index) if !self.inside.is_empty() => {
                let share = self.inside.swap_remove(index % self.inside.len());
                self.line.leave(share);
            }
            Step::Cancel(index) if !self.waiting.is_empty() => {
                let (ticket, _) = self.waiting.swap_remove(index % self.waiting.len());
                self.line.cancel(ticket);
            }
            Step::Leave(_) | Step::Cancel(_) => {}
        }
        self.admit();
    }

    fn admit(&mut self) {
        while let Some((ticket, share)) = self.line.admit() {
            let index = self.waiting.iter().position(|waiting| *waiting == (ticket, share));
            self.waiting.remove(index.expect("those who enter have waited"));
            assert!(self.served.insert(ticket), "{ticket:?} enters twice");
            self.inside.push(share);
        }
    }

    fn is_sound(&self) {
        let Limits { places, waiting, stay } = self.line.limits;
        assert!(self.line.inside() <= places);
        assert!(self.line.waiting() <= waiting);
        assert_eq!((self.line.inside(), self.line.waiting()), (self.inside.len(), self.waiting.len()));
        let held = |share: Share| self.inside.iter().filter(|inside| **inside == share).count();
        let free = places - self.inside.len();
        for (_, share) in &self.waiting {
            let may_enter = match stay {
                Stay::Brief => free > 0,
                Stay::Long => free > held(*share),
            };
            assert!(!may_enter, "{share:?} waits although a place is free");
        }
        assert!(self.line.remembered() <= self.inside.len() + 2 * self.waiting.len() + 5);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_line_is_bounded_admits_everybody_and_forgets_them(
        steps in proptest::collection::vec(any_step(), 1..200),
        places in 1..6_usize,
        waiting in 0..12_usize,
        is_long in any::<bool>(),
    ) {
        let line = line(places, waiting, if is_long { Stay::Long } else { Stay::Brief });
        let mut scene = Scene { line, inside: Vec::new(), waiting: Vec::new(), served: BTreeSet::new() };
        for step in &steps {
            scene.take(step);
            scene.is_sound();
        }

        while !scene.inside.is_empty() {
            scene.take(&Step::Leave(0));
            scene.is_sound();
        }

        prop_assert_eq!(scene.waiting.len(), 0, "a caller was never admitted");
        prop_assert_eq!(scene.line.remembered(), 0, "a share is remembered");
    }

    /// Of shares that always have a waiting caller, none is served twice before each other was served once.
    #[test]
    fn shares_that_always_wait_are_served_alike(shares in 2..8_u64, rounds in 2..20_usize) {
        let mut line = line(1, 1_000, Stay::Brief);
        line.arrive(share(0), part(0));
        for number in 0..shares {
            for count in 0..rounds as u64 + 1 {
                waits(line.arrive(share(number), Part { part: count % 3, within: count % 2 }));
            }
        }
        let mut inside = share(0);
        let mut counts: HashMap<Share, usize> = HashMap::new();
        for _ in 0..shares as usize * rounds {
            let (_, entered) = next_after(&mut line, inside).expect("a caller waits");
            inside = entered;
            *counts.entry(entered).or_default() += 1;
        }

        let (least, most) = (counts.values().min(), counts.values().max());
        // During the first round, shares that had their turn get every other turn.
        let spread = most.unwrap() - least.unwrap();
        prop_assert!(counts.len() == shares as usize && spread <= shares as usize, "{:?}", counts);
    }
}
