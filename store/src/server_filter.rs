//! The filter of a list of servers.

use entity::{server, server_tag};
use sea_orm::sea_query::{LikeExpr, Query};
use sea_orm::{ColumnTrait, Condition};
use uuid::Uuid;

/// A server's status, as a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusFilter {
    /// No agent has ever connected.
    Pending,
    /// An agent is connected.
    Online,
    /// No agent is connected, and one was before.
    Offline,
}

/// Which servers of an owner a list contains; a field that is none filters nothing.
#[derive(Debug, Clone, Default)]
pub struct ServerFilter {
    /// These servers.
    pub ids: Option<Vec<Uuid>>,
    /// Servers with this status.
    pub status: Option<StatusFilter>,
    /// Servers with this tag.
    pub tag: Option<String>,
    /// Servers whose name, host or description contains this, ignoring case.
    pub text: Option<String>,
}

impl ServerFilter {
    /// The condition on the table of servers.
    pub(super) fn condition(self) -> Condition {
        let status = self.status.map(|status| match status {
            StatusFilter::Online => Condition::all().add(server::Column::SessionId.is_not_null()),
            StatusFilter::Offline => {
                Condition::all().add(server::Column::SessionId.is_null()).add(server::Column::Agent.is_not_null())
            }
            StatusFilter::Pending => {
                Condition::all().add(server::Column::SessionId.is_null()).add(server::Column::Agent.is_null())
            }
        });
        let tag = self.tag.map(|tag| {
            let tagged = Query::select()
                .column(server_tag::Column::ServerId)
                .from(server_tag::Entity)
                .and_where(server_tag::Column::Tag.eq(tag))
                .to_owned();
            server::Column::Id.in_subquery(tagged)
        });
        let text = self.text.map(|text| {
            let pattern = format!("%{}%", escape_like(&text.to_lowercase()));
            server::Column::SearchText.like(LikeExpr::new(pattern).escape('\\'))
        });
        let ids = self.ids.map(|ids| server::Column::Id.is_in(ids));
        Condition::all().add_option(ids).add_option(status).add_option(tag).add_option(text)
    }
}

/// Escapes a text for a pattern of LIKE whose escape character is a backslash.
pub(super) fn escape_like(text: &str) -> String {
    text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")
}
