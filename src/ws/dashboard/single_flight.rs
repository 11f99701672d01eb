//! Work of a socket that must not run twice at the same time, however often it is asked for.

/// At most one piece of work runs. Of those that are asked for while it does, the newest follows.
#[derive(Debug, Default)]
pub(super) struct SingleFlight<T> {
    is_running: bool,
    next: Option<T>,
}

impl<T> SingleFlight<T> {
    /// Returns the work if it is to begin; `None` if it has to wait until other work ends.
    pub fn begin(&mut self, work: T) -> Option<T> {
        if self.is_running {
            self.next = Some(work);
            return None;
        }
        self.is_running = true;
        Some(work)
    }

    /// Takes in that the work has ended. Returns the work that waits.
    pub fn end(&mut self) -> Option<T> {
        self.is_running = false;
        self.next.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_runs_at_a_time_and_the_newest_follows() {
        let mut flight = SingleFlight::default();

        assert_eq!(flight.begin(1), Some(1));
        assert_eq!((flight.begin(2), flight.begin(3)), (None, None));

        assert_eq!(flight.end(), Some(3));
        assert_eq!((flight.begin(3), flight.end()), (Some(3), None));
        assert_eq!(flight.begin(4), Some(4));
    }
}
