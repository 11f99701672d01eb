//! Selects the few processes that use the most.

/// Rows of a list.
const SHOWN: usize = 5;

/// The top entries so far, the largest first. Of two equal ones the one with the lower pid comes first, so that lists do not
/// change where nothing does.
#[derive(Debug, Default)]
pub struct Ranking {
    rows: Vec<(f64, RankedProcess)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RankedProcess {
    pub pid: u32,
    pub uid: u32,
    pub name: String,
    pub cpu_percent: f64,
    pub memory_bytes: u64,
}

impl Ranking {
    /// Adds a process if it is among the top. Only then `row` is called, which returns none when the process is gone.
    pub fn offer(&mut self, used: f64, pid: u32, row: impl FnOnce() -> Option<RankedProcess>) {
        let is_less = |(other, row): &(f64, RankedProcess)| *other < used || (*other == used && row.pid > pid);
        let place = self.rows.iter().position(is_less).unwrap_or(self.rows.len());
        if used <= 0.0 || place >= SHOWN {
            return;
        }
        if let Some(row) = row() {
            self.rows.insert(place, (used, row));
            self.rows.truncate(SHOWN);
        }
    }

    pub fn into_rows(self) -> impl Iterator<Item = RankedProcess> {
        self.rows.into_iter().map(|(_, row)| row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(offers: &[(f64, u32)]) -> Vec<u32> {
        let mut ranking = Ranking::default();
        for (used, pid) in offers {
            let row = RankedProcess { pid: *pid, uid: 0, name: String::new(), cpu_percent: 0.0, memory_bytes: 0 };
            ranking.offer(*used, *pid, || Some(row));
        }
        ranking.into_rows().map(|row| row.pid).collect()
    }

    #[test]
    fn the_five_greediest_are_kept_in_order() {
        assert_eq!(ranked(&[(1.0, 1), (6.0, 2), (3.0, 3), (5.0, 4), (2.0, 5), (4.0, 6)]), [2, 4, 6, 3, 5]);
    }

    #[test]
    fn equal_processes_are_ordered_by_pid() {
        let by_pid = [1, 2, 3, 4, 5];

        assert_eq!(ranked(&[1, 2, 3, 4, 5, 6, 7].map(|pid| (1.0, pid))), by_pid);
        assert_eq!(ranked(&[7, 6, 5, 4, 3, 2, 1].map(|pid| (1.0, pid))), by_pid);
    }

    #[test]
    fn idle_processes_are_not_listed() {
        assert_eq!(ranked(&[(0.0, 1), (0.1, 2)]), [2]);
    }

    #[test]
    fn a_row_is_made_for_those_that_are_listed_and_a_process_that_is_gone_leaves_no_gap() {
        let mut ranking = Ranking::default();
        let made = std::cell::Cell::new(0);
        for pid in 1..=100 {
            ranking.offer(f64::from(200 - pid), pid, || {
                made.set(made.get() + 1);
                (pid != 3).then(|| RankedProcess {
                    pid,
                    uid: 0,
                    name: String::new(),
                    cpu_percent: 0.0,
                    memory_bytes: 0,
                })
            });
        }

        assert_eq!(ranking.into_rows().map(|row| row.pid).collect::<Vec<_>>(), [1, 2, 4, 5, 6]);
        assert_eq!(made.get(), 6);
    }
}
