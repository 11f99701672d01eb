//! What came of a pass over many servers.

use uuid::Uuid;

use super::shelf::ArchiveError;

/// Servers in a row that the database failed at, after which the rest is left for the next time.
const MOST_FAILURES: usize = 3;

/// Which servers were left out in a pass.
#[derive(Default)]
pub struct Outcomes {
    pub left: Vec<Uuid>,
    in_a_row: usize,
    last: Option<ArchiveError>,
}

impl Outcomes {
    /// Leaves a server out. When it is the database that fails again and again, gives up.
    pub fn failed(&mut self, server_id: Uuid, error: ArchiveError) -> Result<(), ArchiveError> {
        self.left.push(server_id);
        match error {
            ArchiveError::Store(error) if self.in_a_row + 1 >= MOST_FAILURES => return Err(error.into()),
            ArchiveError::Store(error) => {
                self.in_a_row += 1;
                self.last = Some(error.into());
            }
            ArchiveError::Block(_) | ArchiveError::Codec(_) | ArchiveError::Interrupted => {}
        }
        Ok(())
    }

    /// An error when the database failed at some: they are tried again soon.
    pub fn result(self) -> Result<(), ArchiveError> {
        self.last.map_or(Ok(()), Err)
    }
}
