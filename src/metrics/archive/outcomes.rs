//! The outcome of a pass over many servers.

use uuid::Uuid;

use super::block_io::ArchiveError;

/// After database errors for this many servers in a row, the pass ends.
const MAX_FAILURES: usize = 3;

/// The servers that a pass left out.
#[derive(Default)]
pub struct Outcomes {
    pub left: Vec<Uuid>,
    in_a_row: usize,
    last: Option<ArchiveError>,
}

impl Outcomes {
    /// Leaves a server out. Returns the error if the database keeps failing, which ends the pass.
    pub fn failed(&mut self, server_id: Uuid, error: ArchiveError) -> Result<(), ArchiveError> {
        self.left.push(server_id);
        match error {
            ArchiveError::Store(error) if self.in_a_row + 1 >= MAX_FAILURES => return Err(error.into()),
            ArchiveError::Store(error) => {
                self.in_a_row += 1;
                self.last = Some(error.into());
            }
            ArchiveError::Block(_) | ArchiveError::Codec(_) | ArchiveError::Interrupted => {}
        }
        Ok(())
    }

    /// Returns the last error of the database, so that the servers that it concerned are tried again soon.
    pub fn result(self) -> Result<(), ArchiveError> {
        self.last.map_or(Ok(()), Err)
    }
}
