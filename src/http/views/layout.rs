//! The views of a dashboard and their places, as they are saved.

use deserr::Deserr;
use paperclip::actix::Apiv2Schema;
use serde_json::{Value, json};

use super::definition::{LastRange, Version};
use crate::http::extract::cross_check::{CrossCheck, Fields};
use crate::http::extract::fault::Faults;
use crate::http::extract::field::{Number, Reference};
use crate::http::token_terms::check_length;

/// A page of more charts is read by nobody, and every one is a request.
const MAX_PANELS: usize = 50;

/// Half of the width.
const DEFAULT_WIDTH: u64 = 6;

const DEFAULT_HEIGHT: u64 = 1;

/// A view on a dashboard.
#[derive(Debug, Clone, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct PanelIn {
    view_id: Reference,
    /// In twelfths of the page. Defaults to 6.
    #[deserr(default)]
    width: Option<Number<1, 12>>,
    /// In rows. Defaults to 1.
    #[deserr(default)]
    height: Option<Number<1, 4>>,
}

/// The views of a dashboard in their order, from left to right and from top to bottom.
#[derive(Debug, Clone, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct LayoutIn {
    version: Version,
    /// At most 50.
    panels: Vec<PanelIn>,
    /// The range of all views, written as that of a view. Defaults to the range of each.
    #[deserr(default)]
    range: Option<LastRange>,
}

impl CrossCheck for LayoutIn {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        let panels: Option<Vec<PanelIn>> = fields.sound("panels");
        check_length("panels", panels.map(|panels| panels.len()), MAX_PANELS, fields.location)
    }
}

impl LayoutIn {
    /// A layout without views.
    pub fn empty() -> Self {
        Self { version: Number(1), panels: Vec::new(), range: None }
    }

    /// The form in which it is saved and returned, with all fields.
    pub fn text(self) -> String {
        let panel = |panel: PanelIn| -> Value {
            json!({
                "view_id": panel.view_id.0,
                "width": panel.width.map_or(DEFAULT_WIDTH, |Number(width)| width),
                "height": panel.height.map_or(DEFAULT_HEIGHT, |Number(height)| height),
            })
        };
        json!({
            "version": self.version.0,
            "panels": self.panels.into_iter().map(panel).collect::<Vec<_>>(),
            "range": self.range.map(|LastRange(range)| range),
        })
        .to_string()
    }
}
