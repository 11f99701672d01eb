//! Exact lengths of lists of alerts, without reading each alert.

use entity::{alert, alert_bucket};
use sea_orm::sea_query::{Expr, SelectStatement, UnionType};
use sea_orm::{
    Condition, ConnectionTrait, EntityTrait, ExprTrait, FromQueryResult, QueryFilter, QuerySelect, QueryTrait,
};

use super::{Store, StoreError};

/// A term of a total.
pub(super) enum Term {
    /// Counts the matching alerts one by one.
    Alerts(Condition),
    /// Counts the matching alerts one by one and subtracts them.
    Without(Condition),
    /// Adds the counts of the matching buckets.
    Buckets(Condition),
}

#[derive(FromQueryResult)]
struct Number {
    total: i64,
    number: i64,
}

impl Store {
    /// The sums of these terms, read in one statement so that they are consistent.
    pub(super) async fn totals(&self, sums: &[&[Term]]) -> Result<Vec<u64>, StoreError> {
        let Some(query) = query(sums) else { return Ok(vec![0; sums.len()]) };
        let statement = self.read.get_database_backend().build(&query);
        let mut totals = vec![0_i64; sums.len()];
        for Number { total, number } in Number::find_by_statement(statement).all(&self.read).await? {
            if let Some(total) = usize::try_from(total).ok().and_then(|total| totals.get_mut(total)) {
                *total = total.saturating_add(number);
            }
        }
        Ok(totals.into_iter().map(|total| u64::try_from(total).unwrap_or_default()).collect())
    }
}

/// Each term's number, with the index of its sum.
pub(super) fn query(sums: &[&[Term]]) -> Option<SelectStatement> {
    let places = (0_i64..).zip(sums);
    let mut numbers = places.flat_map(|(place, terms)| terms.iter().map(move |term| term.number(place)));
    let mut all = numbers.next()?;
    for number in numbers {
        all.union(UnionType::All, number);
    }
    Some(all)
}

impl Term {
    fn number(&self, place: i64) -> SelectStatement {
        let alerts = |number: &'static str, condition: &Condition| {
            let found = alert::Entity::find().select_only().expr_as(Expr::value(place), "total");
            found.expr_as(Expr::cust(number), "number").filter(condition.clone()).into_query()
        };
        match self {
            Self::Alerts(condition) => alerts("COUNT(*)", condition),
            Self::Without(condition) => alerts("-COUNT(*)", condition),
            Self::Buckets(condition) => {
                // The sum of no rows is null, and PostgreSQL's sum of integers is not an integer.
                let sum = Expr::cust("COALESCE(SUM(count), 0)").cast_as("BIGINT");
                let found = alert_bucket::Entity::find().select_only().expr_as(Expr::value(place), "total");
                found.expr_as(sum, "number").filter(condition.clone()).into_query()
            }
        }
    }
}
