//! The agent against a service that behaves as each test requires, over real sockets.

#[cfg(test)]
mod agent;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod connection;
#[cfg(test)]
mod delivery;
#[cfg(test)]
mod endpoints;
#[cfg(test)]
mod flags;
#[cfg(test)]
mod live;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod program;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod restarts;
#[cfg(test)]
mod series;
#[cfg(test)]
mod service;
#[cfg(test)]
mod state;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod tls;
