//! `/notifications`: where people are told of alerts, and what they were told.

mod channels;
mod deliveries;
mod fields;
mod settings;

pub use channels::{
    create as create_channel, delete as delete_channel, list as list_channels, read as read_channel,
    test as test_channel, update as update_channel,
};
pub use deliveries::list as list_deliveries;
