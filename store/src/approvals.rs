//! Signed commands that wait until enough people have signed them.
//!
//! A row counts as waiting while its status says so, and each end of the wait is an update with that condition: of a last
//! signature, a withdrawal and an expiry at the same moment, one decides. What starts the batch is [`approve`], in the
//! transaction that stores the batch. One whose signatures no agent took waits again ([`super::refused_approvals`]).

use entity::{Millis, approval, approval_server, approval_signature, server};
use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, JoinType, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect, QueryTrait, RelationTrait,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::advisory_lock::lock_owner;
use super::audit_log::record_in;
use super::commands::ROWS_AT_ONCE;
use super::failure::no_server;
use super::{Approval, ApprovalSignature, Page, PageRequest, Store, StoreError, Visibility};
use crate::audit::Entry;

/// The commands of one account that may wait at the same time: each holds up to half a megabyte for a day.
pub const MAX_WAITING: u64 = 50;

/// The most signatures of one command, as agents take them.
pub(super) const MAX_SIGNATURES: u64 = 16;

/// How many rows one look ends or starts.
const AT_ONCE: u64 = 50;

/// The status of a row that waits.
pub(super) const WAITING: &str = "awaiting_approval";

/// The status of a row that has become a batch.
pub(super) const APPROVED: &str = "approved";

/// What somebody asks others to sign.
#[derive(Debug, Clone)]
pub struct NewApproval {
    /// The row.
    pub approval: Approval,
    /// The servers that it is for.
    pub servers: Vec<Uuid>,
    /// The signatures that it has already.
    pub signatures: Vec<ApprovalSignature>,
}

/// A server of a command that waits.
#[derive(Debug, Clone, PartialEq, Eq, sea_orm::FromQueryResult)]
pub struct ApprovalServer {
    /// The server.
    pub id: Uuid,
    /// Its owner.
    pub owner_id: Uuid,
    /// Its name.
    pub name: String,
}

/// What became of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signing {
    /// It was added.
    Added,
    /// The signer has signed before.
    Twice,
    /// The command has as many signatures as agents take.
    Full,
    /// The command does not wait any more.
    Over,
}

impl Store {
    /// Stores a command that waits.
    ///
    /// # Errors
    ///
    /// [`StoreError::TooManyApprovals`] when [`MAX_WAITING`] commands of the account wait, and [`StoreError::NoServer`] when one of
    /// the servers was deleted.
    pub async fn create_approval(&self, new: &NewApproval, entry: Entry) -> Result<(), StoreError> {
        let NewApproval { approval, servers, signatures } = new;
        let server_rows: Vec<_> = servers
            .iter()
            .map(|server_id| approval_server::Model { approval_id: approval.id, server_id: *server_id })
            .collect();
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            lock_owner(&transaction, approval.user_id).await?;
            let waiting = approval::Entity::find()
                .filter(approval::Column::UserId.eq(approval.user_id))
                .filter(approval::Column::Status.eq(WAITING))
                .filter(approval::Column::ExpiresAt.gt(approval.created_at));
            if waiting.count(&transaction).await? >= MAX_WAITING {
                return Err(StoreError::TooManyApprovals);
            }
            let row = active(approval.clone());
            approval::Entity::insert(row).exec_without_returning(&transaction).await?;
            for some in server_rows.chunks(ROWS_AT_ONCE) {
                let rows = some.iter().cloned().map(active);
                approval_server::Entity::insert_many(rows)
                    .exec_without_returning(&transaction)
                    .await
                    .map_err(no_server)?;
            }
            for signature in signatures {
                let row = active(signature.clone());
                approval_signature::Entity::insert(row).exec_without_returning(&transaction).await?;
            }
            record_in(&transaction, entry.clone()).await?;
            Ok(transaction.commit().await?)
        })
        .await
    }

    /// Adds a signature to a command that waits and holds at this time.
    pub async fn sign_approval(
        &self,
        signature: &ApprovalSignature,
        entry: Entry,
        now: Timestamp,
    ) -> Result<Signing, StoreError> {
        let id = signature.approval_id;
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            // Holds the row until the transaction ends, so that no signature is added to what has just begun to run.
            let held = approval::Entity::update_many()
                .col_expr(approval::Column::Status, Expr::value(WAITING))
                .filter(waits(id))
                .filter(approval::Column::ExpiresAt.gt(Millis::from(now)))
                .exec(&transaction)
                .await?;
            if held.rows_affected == 0 {
                return Ok(Signing::Over);
            }
            let of_it = approval_signature::Column::ApprovalId.eq(id);
            let there = approval_signature::Entity::find().filter(of_it).count(&transaction).await?;
            if there >= MAX_SIGNATURES {
                return Ok(Signing::Full);
            }
            let key = [approval_signature::Column::ApprovalId, approval_signature::Column::Signer];
            let added = approval_signature::Entity::insert(active(signature.clone()))
                .on_conflict(OnConflict::columns(key).do_nothing().to_owned())
                .exec_without_returning(&transaction)
                .await?;
            if added == 0 {
                return Ok(Signing::Twice);
            }
            record_in(&transaction, entry.clone()).await?;
            transaction.commit().await?;
            Ok(Signing::Added)
        })
        .await
    }

    /// Ends the wait of a command that will not run. Returns whether it was waiting.
    pub async fn end_approval(
        &self,
        id: Uuid,
        status: &'static str,
        at: Timestamp,
        entry: Entry,
    ) -> Result<bool, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            if !end(&transaction, id, status, at).await? {
                return Ok(false);
            }
            record_in(&transaction, entry.clone()).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }

    /// Lists what this user has asked for, and what others ask of those who may do it on all servers that it is for. Newest
    /// first, without payload and input; those that wait only, or all that are kept.
    pub async fn list_approvals(
        &self,
        user_id: Uuid,
        usable: &Visibility,
        status: Option<&str>,
        page: PageRequest,
    ) -> Result<Page<Approval>, StoreError> {
        let of_status = Condition::all().add_option(status.map(|status| approval::Column::Status.eq(status)));
        let query = approval::Entity::find().filter(self.shown(user_id, usable).await?).filter(of_status);
        let total = query.clone().count(&self.read).await?;
        let query = short(query).order_by_desc(approval::Column::Id).limit(page.limit).offset(page.offset);
        Ok(Page { items: query.all(&self.read).await?, total })
    }

    /// Finds what [`Self::list_approvals`] lists.
    pub async fn find_approval(
        &self,
        user_id: Uuid,
        usable: &Visibility,
        id: Uuid,
    ) -> Result<Option<Approval>, StoreError> {
        let query = approval::Entity::find_by_id(id).filter(self.shown(user_id, usable).await?);
        Ok(query.one(&self.read).await?)
    }

    async fn shown(&self, user_id: Uuid, usable: &Visibility) -> Result<Condition, StoreError> {
        let usable = self.branches(usable).await?.any();
        let servers = || approval_server::Entity::find().select_only().column(approval_server::Column::ApprovalId);
        let hidden = servers().join(JoinType::InnerJoin, approval_server::Relation::Server.def()).filter(usable.not());
        let of_others = Condition::all()
            .add(approval::Column::Id.in_subquery(servers().into_query()))
            .add(approval::Column::Id.not_in_subquery(hidden.into_query()));
        Ok(Condition::any().add(approval::Column::UserId.eq(user_id)).add(of_others))
    }

    /// The servers that a command waits for, by name. Deleted ones are missing.
    pub async fn approval_servers(&self, id: Uuid) -> Result<Vec<ApprovalServer>, StoreError> {
        let servers = approval_server::Entity::find()
            .join(JoinType::InnerJoin, approval_server::Relation::Server.def())
            .filter(approval_server::Column::ApprovalId.eq(id))
            .select_only()
            .columns([server::Column::Id, server::Column::OwnerId, server::Column::Name])
            .order_by_asc(server::Column::Name)
            .order_by_asc(server::Column::Id);
        Ok(servers.into_model::<ApprovalServer>().all(&self.read).await?)
    }

    /// The signatures of these commands, the oldest first.
    pub async fn approval_signatures(&self, ids: &[Uuid]) -> Result<Vec<ApprovalSignature>, StoreError> {
        let signatures = approval_signature::Entity::find()
            .filter(approval_signature::Column::ApprovalId.is_in(ids.iter().copied()))
            .order_by_asc(approval_signature::Column::SignedAt)
            .order_by_asc(approval_signature::Column::Signer);
        Ok(signatures.all(&self.read).await?)
    }

    /// Reads a command that waits, for the service.
    pub async fn waiting_approval(&self, id: Uuid) -> Result<Option<Approval>, StoreError> {
        Ok(approval::Entity::find().filter(waits(id)).one(&self.read).await?)
    }

    /// Some of the commands that wait, hold now, and have as many signatures as they need.
    pub async fn complete_approvals(&self, now: Timestamp) -> Result<Vec<Uuid>, StoreError> {
        let signed = Expr::cust(
            "needed <= (SELECT COUNT(*) FROM approval_signatures WHERE approval_signatures.approval_id = approvals.id)",
        );
        let complete = approval::Entity::find()
            .filter(approval::Column::Status.eq(WAITING))
            .filter(approval::Column::NotBefore.lte(Millis::from(now)))
            .filter(approval::Column::ExpiresAt.gt(Millis::from(now)))
            .filter(signed)
            .select_only()
            .column(approval::Column::Id)
            .order_by_asc(approval::Column::Id)
            .limit(AT_ONCE);
        Ok(complete.into_tuple().all(&self.read).await?)
    }

    /// Some of the commands that wait and cannot run any more: their time was over at `time`, or all their servers were deleted.
    pub async fn overdue_approvals(&self, time: Timestamp) -> Result<Vec<Approval>, StoreError> {
        let servers = approval_server::Entity::find().select_only().column(approval_server::Column::ApprovalId);
        let cannot_run = Condition::any()
            .add(approval::Column::ExpiresAt.lte(Millis::from(time)))
            .add(approval::Column::Id.not_in_subquery(servers.into_query()));
        let overdue = short(approval::Entity::find())
            .filter(approval::Column::Status.eq(WAITING))
            .filter(cannot_run)
            .order_by_asc(approval::Column::ExpiresAt)
            .limit(AT_ONCE);
        Ok(overdue.all(&self.read).await?)
    }

    /// Removes what was asked before `before` and waits no more. Returns how many.
    pub async fn forget_approvals(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.retried(|| async {
            let old = approval::Entity::delete_many()
                .filter(approval::Column::Status.ne(WAITING))
                .filter(approval::Column::CreatedAt.lt(Millis::from(before)));
            Ok(old.exec(&self.write).await?.rows_affected)
        })
        .await
    }
}

/// Ends the wait of a command that is about to run as this batch. Returns whether it was waiting, and held at this time.
pub(super) async fn approve(
    connection: &impl ConnectionTrait,
    id: Uuid,
    batch_id: Uuid,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let holds = Condition::all()
        .add(approval::Column::NotBefore.lte(Millis::from(at)))
        .add(approval::Column::ExpiresAt.gt(Millis::from(at)));
    let approved = approval::Entity::update_many()
        .col_expr(approval::Column::Status, Expr::value(APPROVED))
        .col_expr(approval::Column::EndedAt, Millis::from(at).into())
        .col_expr(approval::Column::BatchId, Expr::value(batch_id))
        .col_expr(approval::Column::RefusedReason, Expr::value(None::<String>))
        .filter(waits(id).add(holds))
        .exec(connection)
        .await?;
    Ok(approved.rows_affected > 0)
}

async fn end(
    connection: &impl ConnectionTrait,
    id: Uuid,
    status: &'static str,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let ended = approval::Entity::update_many()
        .col_expr(approval::Column::Status, Expr::value(status))
        // It may be a secret, and is not needed any more.
        .col_expr(approval::Column::Stdin, Expr::value(None::<String>))
        .col_expr(approval::Column::EndedAt, Millis::from(at).into())
        .filter(waits(id))
        .exec(connection)
        .await?;
    Ok(ended.rows_affected > 0)
}

/// Omits payload and input, which may be a megabyte.
fn short(query: sea_orm::Select<approval::Entity>) -> sea_orm::Select<approval::Entity> {
    use approval::Column;
    let kept =
        <Column as sea_orm::Iterable>::iter().filter(|column| !matches!(column, Column::Payload | Column::Stdin));
    query
        .select_only()
        .columns(kept)
        .column_as(Expr::value(Vec::<u8>::new()), "payload")
        .column_as(Expr::value(None::<String>), "stdin")
}

fn waits(id: Uuid) -> Condition {
    Condition::all().add(approval::Column::Id.eq(id)).add(approval::Column::Status.eq(WAITING))
}

fn active<M, A>(model: M) -> A
where
    M: IntoActiveModel<A>,
    A: sea_orm::ActiveModelTrait,
{
    model.into_active_model().reset_all()
}
