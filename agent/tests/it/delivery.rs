//! Every sample arrives, whatever happens to the connection or to the agent.

use std::collections::BTreeSet;

use signalbox_agent::{Config, Exit};

use crate::agent::{Agent, config, numbers, state_dir};
use crate::service::{Peer, Service};

/// Reads batches and acknowledges them until sample `last` has come. Returns all their numbers.
async fn receive_until(peer: &mut Peer<tokio::net::TcpStream>, last: i64) -> Vec<i64> {
    let mut received = Vec::new();
    while received.last().is_none_or(|number| *number < last) {
        let metrics = peer.metrics().await;
        received.extend(numbers(&metrics));
        peer.ack(metrics.seq).await;
    }
    received
}

/// An agent that takes samples fast, and took this many before it could connect.
async fn agent_with_a_backlog(service: &Service, samples: i64) -> Agent {
    let fast = signalbox_agent::Interval::of(std::time::Duration::from_millis(1));
    let mut agent = Agent::start(Config { interval: fast, ..config(&service.url()) });
    let away = service.accept_tcp().await;
    agent.has_taken(samples).await;
    drop(away);
    agent
}

#[tokio::test]
async fn live_samples_arrive_one_by_one_with_rising_numbers() {
    let service = Service::start().await;
    let agent = Agent::start(config(&service.url()));
    let mut peer = service.accept_authenticated().await;

    let mut previous = peer.metrics().await;
    peer.ack(previous.seq).await;
    for _ in 0..5 {
        let next = peer.metrics().await;
        peer.ack(next.seq).await;
        assert!(next.seq > previous.seq);
        assert_eq!(numbers(&next).first(), numbers(&previous).last().map(|last| last + 1).as_ref());
        previous = next;
    }

    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn unacknowledged_samples_are_sent_again_on_the_next_connection() {
    let service = Service::start().await;
    let agent = Agent::start(config(&service.url()));

    let mut never_acks = service.accept_authenticated().await;
    let lost = numbers(&never_acks.metrics().await);
    drop(never_acks);
    let mut peer = service.accept_authenticated().await;
    let again = numbers(&peer.metrics().await);

    assert_eq!(lost.first(), Some(&1));
    assert_eq!(again.get(..lost.len()), Some(lost.as_slice()));
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn an_acknowledged_sample_is_not_sent_again() {
    let service = Service::start().await;
    let agent = Agent::start(config(&service.url()));

    let mut first = service.accept_authenticated().await;
    let received = receive_until(&mut first, 3).await;
    // The agent reads the close frame after the acks, and answers it after it has handled them.
    first.close(1012, "").await;
    first.gone().await;
    let mut second = service.accept_authenticated().await;
    let next = numbers(&second.metrics().await);

    assert_eq!(next.first(), received.last().map(|last| last + 1).as_ref());
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn samples_taken_while_the_service_was_away_arrive_together() {
    let service = Service::start().await;
    let mut agent = Agent::start(config(&service.url()));

    let away = service.accept_tcp().await;
    agent.has_taken(40).await;
    drop(away);
    let mut peer = service.accept_authenticated().await;
    let first = peer.metrics().await;

    let received = numbers(&first);
    assert!(received.len() >= 40);
    assert_eq!(received, (1..=received.len() as i64).collect::<Vec<_>>());
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn after_a_long_outage_live_samples_come_first_and_the_backlog_in_order() {
    let service = Service::start().await;
    let agent = agent_with_a_backlog(&service, 1500).await;
    let mut peer = service.accept_authenticated().await;

    let first = peer.metrics().await;
    let newest = numbers(&first);
    peer.ack(first.seq).await;
    let (mut seq, mut live, mut behind) = (first.seq, newest.clone(), Vec::new());
    while behind.len() + 1 < newest[0] as usize {
        let metrics = peer.metrics().await;
        assert!(metrics.seq > seq, "numbered in the order of sending");
        seq = metrics.seq;
        let numbers = numbers(&metrics);
        assert!(numbers.len() <= 256, "bounded batches");
        if numbers[0] > newest[0] {
            live.extend(numbers)
        } else {
            behind.extend(numbers)
        }
        peer.ack(metrics.seq).await;
    }

    assert_eq!(newest.len(), 1);
    assert!(newest[0] >= 1500);
    assert_eq!(behind, (1..newest[0]).collect::<Vec<_>>());
    assert!(live.len() > 1, "live samples continue while the others follow");
    assert!(live.windows(2).all(|pair| pair[1] == pair[0] + 1), "without a gap");
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_service_that_acknowledges_nothing_gets_live_samples_and_two_batches_of_backlog() {
    let service = Service::start().await;
    let agent = agent_with_a_backlog(&service, 1500).await;
    let mut peer = service.accept_authenticated().await;

    let mut sent = Vec::new();
    for _ in 0..20 {
        sent.push(numbers(&peer.metrics().await));
    }

    let behind: Vec<i64> = sent.iter().filter(|numbers| numbers[0] < 1500).flatten().copied().collect();
    assert_eq!(behind, (1..=512).collect::<Vec<_>>());
    assert!(sent[0][0] >= 1500 && sent[0].len() == 1, "the newest alone, and first: {:?}", sent[0]);
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn a_connection_that_breaks_within_the_backlog_loses_nothing() {
    let service = Service::start().await;
    let agent = agent_with_a_backlog(&service, 1500).await;

    let mut received = BTreeSet::new();
    // Each connection breaks after one more message was acknowledged, in either lane.
    for messages in 0..4 {
        let mut peer = service.accept_authenticated().await;
        for _ in 0..messages {
            receive(&mut peer, &mut received).await;
        }
        let _lost = peer.metrics().await;
    }
    let mut peer = service.accept_authenticated().await;
    while received.last() < Some(&1500) || received.len() as i64 != received.last().copied().unwrap_or(0) {
        receive(&mut peer, &mut received).await;
    }

    assert_eq!(received.first(), Some(&1));
    assert_eq!(agent.stop().await, Exit::Stopped);
}

/// Reads one batch into `received` and acknowledges it.
async fn receive(peer: &mut Peer<tokio::net::TcpStream>, received: &mut BTreeSet<i64>) {
    let metrics = peer.metrics().await;
    received.extend(numbers(&metrics));
    peer.ack(metrics.seq).await;
}

#[tokio::test]
async fn live_samples_are_sent_while_nothing_is_acknowledged() {
    let service = Service::start().await;
    let fast = signalbox_agent::Interval::of(std::time::Duration::from_millis(1));
    let agent = Agent::start(Config { interval: fast, ..config(&service.url()) });
    let mut peer = service.accept_authenticated().await;

    // More than is remembered one by one.
    let mut sent = Vec::new();
    for _ in 0..600 {
        sent.extend(numbers(&peer.metrics().await));
    }
    // Everything sent by the time it arrives: the agent may be ahead of what was read here.
    peer.ack(u64::MAX).await;
    peer.close(1012, "").await;
    peer.gone().await;
    let next = numbers(&service.accept_authenticated().await.metrics().await);

    // Where it could not connect soon, earlier samples follow the current ones.
    let present: Vec<i64> = sent.iter().copied().filter(|number| *number >= sent[0]).collect();
    assert!(present.windows(2).all(|pair| pair[1] == pair[0] + 1), "{sent:?}");
    let last = present.last();
    assert!(next.first() > last, "the last acknowledgement counts for all: {next:?} after {last:?}");
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn an_agent_that_was_stopped_sends_the_rest_when_it_is_started_again() {
    let service = Service::start().await;
    let state = state_dir();
    let config = Config { state_dir: Some(state.path().into()), ..config(&service.url()) };

    let mut agent = Agent::start(config.clone());
    let mut first = service.accept_authenticated().await;
    let received = receive_until(&mut first, 3).await;
    drop(first);
    agent.has_taken(20).await;
    let taken = agent.taken();
    agent.stop().await;
    let agent = Agent::start_at(config, 1_000_000);
    let mut peer = loop {
        // The first agent may have begun to reconnect before it was stopped.
        let Ok(socket) = tokio_tungstenite::accept_async(service.accept_tcp().await).await else { continue };
        let mut peer = Peer { socket };
        if peer.frame().await.is_some() {
            peer.send(&crate::service::accepted(None)).await;
            break peer;
        }
    };
    let mut rest = Vec::new();
    while !rest.contains(&taken) || rest.iter().all(|number| *number < 1_000_000) {
        let metrics = peer.metrics().await;
        rest.extend(numbers(&metrics));
        peer.ack(metrics.seq).await;
    }

    let old: Vec<i64> = rest.into_iter().filter(|number| *number < 1_000_000).collect();
    assert!(old[0] <= received.last().unwrap() + 1, "{old:?}");
    assert!(old.last() >= Some(&taken));
    assert!(old.windows(2).all(|pair| pair[1] == pair[0] + 1), "without a gap");
    assert_eq!(agent.stop().await, Exit::Stopped);
}

#[tokio::test]
async fn many_agents_run_on_one_thread() {
    let service = Service::start().await;
    let agents: Vec<Agent> = (0..50).map(|_| Agent::start(config(&service.url()))).collect();

    for _ in 0..50 {
        service.accept_authenticated().await.metrics().await;
    }

    for agent in agents {
        assert_eq!(agent.stop().await, Exit::Stopped);
    }
}
