//! The OpenAPI document: made by paperclip from the handlers, then put right where paperclip is silent.

mod beside;
mod errors;
mod polish;

use std::collections::BTreeMap;

use actix_web::App;
use bytes::Bytes;
use paperclip::actix::OpenApiExt;
use paperclip::v2::models::{DefaultApiRaw, Info};
use serde_json::Value;

use super::documented;

/// The document as it is served.
pub struct Document {
    bytes: Bytes,
    /// Path to its methods, as the `Allow` header wants them.
    methods: BTreeMap<String, String>,
}

impl Document {
    /// Makes the document. Only once: it does not change while the service runs.
    pub fn new() -> Self {
        let document = document();
        let bytes = serde_json::to_vec(&document).unwrap_or_default().into();
        Self { bytes, methods: methods(&document) }
    }

    pub fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// The methods of a path, GET for those that are not in the document.
    pub fn methods(&self, path: &str) -> String {
        self.methods.get(path).cloned().unwrap_or_else(|| "GET".to_owned())
    }
}

impl Default for Document {
    fn default() -> Self {
        Self::new()
    }
}

/// The whole document.
pub fn document() -> Value {
    polish::polish(raw())
}

/// What paperclip makes of the handlers' types.
fn raw() -> Value {
    let spec = DefaultApiRaw {
        info: Info {
            title: "Signalbox".into(),
            version: "1.0.0".into(),
            description: Some("See and run all your servers from one self-hosted service.".into()),
            ..Info::default()
        },
        ..DefaultApiRaw::default()
    };
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut app = App::new().wrap_api_with_spec(spec);
    for resource in documented() {
        app = app.service(resource);
    }
    let app = app.with_raw_json_spec_v3(move |app, document| {
        // The receiver stands below, so this cannot fail.
        _ = sender.send(document);
        app
    });
    drop(app.build());
    receiver.recv().unwrap_or_default()
}

fn methods(document: &Value) -> BTreeMap<String, String> {
    let paths = document.get("paths").and_then(Value::as_object);
    let methods_of = |item: &Value| {
        let verbs = item.as_object().into_iter().flat_map(|item| item.keys());
        let verbs: Vec<String> = verbs.map(|verb| verb.to_uppercase()).collect();
        verbs.join(", ")
    };
    paths.into_iter().flatten().map(|(path, item)| (path.clone(), methods_of(item))).collect()
}
