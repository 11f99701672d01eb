//! tmp
use super::*;
impl Store {
    pub async fn silences_of(&self, _owner_id: uuid::Uuid) -> Result<Vec<Silence>, StoreError> {
        Ok(Vec::new())
    }
}
