//! Which recipients have a mail, while it is handed over.

use lettre::Address;

use super::super::hand_over::HandOver;
use super::super::sender::{Receipt, Refusal, Refused};
use crate::store::{MAX_HAND_OVERS, Progress, Standing};

/// Records the outcome for each recipient, and derives that of the message in the end.
pub(super) struct Tally {
    progress: Progress,
    /// The last reason why a recipient does not have it.
    trouble: Option<Refused>,
}

impl Tally {
    pub fn new(before: &Progress) -> Self {
        Self { progress: before.clone(), trouble: None }
    }

    /// Records that these recipients do not have it. A recipient who may have it from an earlier attempt still may; if the
    /// server rejects it now, it is not handed over again for that recipient.
    pub fn refused(&mut self, to: &[Address], refused: &Refused) {
        for address in to {
            let reason = refused.detail.clone();
            let name = name(address);
            match (self.progress.of(name), refused.kind) {
                (Some(Standing::Perhaps { .. }), Refusal::Rejected) => {
                    self.progress.set(name, Standing::Perhaps { times: MAX_HAND_OVERS });
                }
                (Some(Standing::Perhaps { .. }), _) => {}
                (_, Refusal::Rejected) => self.progress.set(name, Standing::Refused { reason }),
                _ => self.progress.set(name, Standing::Waiting { reason }),
            }
        }
        if !to.is_empty() {
            self.trouble = Some(refused.clone());
        }
    }

    /// Records that it is about to be handed over for these recipients. Returns false if that failed.
    pub async fn begin(&mut self, to: &[Address], hand_over: &dyn HandOver) -> bool {
        let mut begun = self.progress.clone();
        to.iter().for_each(|address| begun.hand_over(name(address)));
        hand_over.begins(&begun).await
    }

    pub fn delivered(&mut self, to: &[Address]) {
        to.iter().for_each(|address| self.progress.set(name(address), Standing::Delivered));
    }

    /// Records that it was handed over for these recipients, and that no answer came.
    pub fn unanswered(&mut self, to: &[Address], detail: &str) {
        to.iter().for_each(|address| self.progress.hand_over(name(address)));
        self.trouble = Some(Refused::new(Refusal::Perhaps, detail));
    }

    pub fn is_left(&self, address: &Address) -> bool {
        self.progress.is_left(name(address))
    }

    /// Returns the outcome of the message, which is for `all`.
    pub fn settle(self, host: &str, all: &[String]) -> Result<Receipt, Refused> {
        let Self { progress, trouble } = self;
        let taken = all.iter().filter(|address| progress.of(address) == Some(&Standing::Delivered)).count();
        let detail = match &trouble {
            None if taken == all.len() => format!("{host} accepted the mail"),
            None => format!("{host} accepted the mail for {taken} of {} recipients", all.len()),
            Some(refused) if taken == 0 => refused.detail.clone(),
            Some(refused) => {
                format!("{host} accepted the mail for {taken} of {} recipients; {}", all.len(), refused.detail)
            }
        };
        if progress.is_settled(all) {
            return Ok(Receipt { detail, progress });
        }
        let kind = trouble.map_or(Refusal::Unreachable, |refused| refused.kind);
        Err(Refused::new(kind, detail).with(progress))
    }
}

fn name(address: &Address) -> &str {
    address.as_ref()
}
