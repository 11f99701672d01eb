use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{AgentMessage, Execute, ServiceMessage};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::fake::FakeService;
use super::{
    AgentSocket, Backfill, BackfillPlan, Burst, BurstPlan, CommandTimes, Event, OUTPUT, Obedient, Regular, RegularPlan,
    Resilient, ResilientPlan, Schedule, Source,
};
use crate::data::Dataset;
use crate::sent_times::SentTimes;
use crate::stop::StopSource;
use crate::template::Template;

#[tokio::test]
async fn a_regular_agent_counts_what_was_acknowledged() {
    let mut service = FakeService::start(&[]).await;
    let socket = AgentSocket::connect(service.address, &service.enrolled).await.unwrap();
    let sent_times = Arc::new(SentTimes::default());
    let plan = RegularPlan { interval: Duration::from_millis(5), acknowledged: Arc::default() };
    let source = Source::Template(Template::new(1).unwrap());
    let (stop_source, stop) = StopSource::new();

    let agent = Regular { plan: plan.clone(), source, socket, sent_times: Some(sent_times.clone()) };
    let running = tokio::spawn(agent.run(stop));
    let first = service.batches.recv().await.unwrap();
    let second = service.batches.recv().await.unwrap();
    stop_source.stop();
    let outcome = running.await.unwrap();

    assert_eq!(outcome.failure, None);
    assert_eq!((first.seq, second.seq), (1, 2));
    assert!(first.samples[0].timestamp < second.samples[0].timestamp);
    assert!(sent_times.age(second.samples[0].timestamp).is_some());
    assert_eq!(outcome.samples_sent, outcome.samples_acknowledged);
    assert_eq!(outcome.samples_sent, plan.acknowledged.load(Ordering::Relaxed));
    assert_eq!(outcome.samples_sent, sent_times.count() as u64);
}

#[tokio::test]
async fn a_bursting_agent_never_sends_a_sample_twice() {
    let mut service = FakeService::start(&[]).await;
    let socket = AgentSocket::connect(service.address, &service.enrolled).await.unwrap();
    let first = Timestamp::from_millis(1_795_166_130_000);
    let plan = BurstPlan {
        template: Template::new(3).unwrap(),
        batch: 3,
        window: 4,
        first,
        step_ms: 1000,
        acknowledged: Arc::default(),
    };
    let (source, stop) = StopSource::new();

    let running = tokio::spawn(Burst { plan, socket }.run(stop));
    let mut times = Vec::new();
    for _ in 0..10 {
        let batch = service.batches.recv().await.unwrap();
        times.extend(batch.samples.iter().map(|sample| sample.timestamp));
    }
    source.stop();
    let outcome = running.await.unwrap();

    let expected: Vec<Timestamp> = (0..30).map(|number| first.plus_millis(number * 1000)).collect();
    assert_eq!(times, expected);
    assert_eq!(outcome.failure, None);
    assert_eq!(outcome.samples_sent, outcome.samples_acknowledged);
}

#[tokio::test]
async fn a_resilient_agent_sends_again_what_was_not_acknowledged() {
    let mut service = FakeService::start(&[1]).await;
    let socket = AgentSocket::connect(service.address, &service.enrolled).await.unwrap();
    let first = Timestamp::from_millis(1_795_166_130_000);
    let (events, mut told) = mpsc::channel(16);
    let agent = Resilient {
        plan: ResilientPlan {
            template: Template::new(2).unwrap(),
            batch: 2,
            interval: Duration::from_millis(20),
            schedule: Schedule::from(first),
            step_ms: 1000,
            kept: 8,
        },
        number: 7,
        addresses: vec![service.address],
        enrolled: service.enrolled.clone(),
        events,
    };
    let (source, stop) = StopSource::new();

    let running = tokio::spawn(agent.run(socket, stop));
    let mut seqs = Vec::new();
    for _ in 0..3 {
        seqs.push(service.batches.recv().await.unwrap().seq);
    }
    source.stop();
    let ledger = running.await.unwrap();

    let batches = ledger.acknowledged.len() as i64;
    let expected: Vec<Timestamp> = (0..batches).map(|number| first.plus_millis(number * 2000)).collect();
    assert_eq!(seqs, [1, 2, 2]);
    assert_eq!(ledger.acknowledged, expected);
    assert_eq!(ledger.unacknowledged, []);
    let mut kinds = Vec::new();
    while let Ok(event) = told.try_recv() {
        kinds.push(match event {
            Event::Authenticated { agent, .. } => ("authenticated", agent),
            Event::Acknowledged { agent, .. } => ("acknowledged", agent),
        });
    }
    let connection = [("authenticated", 7), ("acknowledged", 7)];
    assert_eq!(kinds, [connection, connection].concat());
}

#[tokio::test]
async fn a_backfilling_agent_sends_every_sample_of_its_machine_once() {
    let mut service = FakeService::start(&[]).await;
    let socket = AgentSocket::connect(service.address, &service.enrolled).await.unwrap();
    let data = Dataset { seed: 1, servers: 1, first: Timestamp::from_millis(0), interval_ms: 5000, samples: 25 };
    let plan = BackfillPlan { batch: 10, window: 2, samples_a_second: None, acknowledged: Arc::default() };
    let (_source, stop) = StopSource::new();

    let agent = Backfill { plan: plan.clone(), machine: data.machine(0), samples: data.samples, socket };
    let outcome = agent.run(stop).await;

    let mut machine = data.machine(0);
    let mut expected = machine.blank();
    let mut sizes = Vec::new();
    while let Ok(batch) = service.batches.try_recv() {
        sizes.push(batch.samples.len());
        for sample in batch.samples {
            machine.fill(&mut expected);
            assert_eq!(sample, expected);
        }
    }
    assert_eq!(outcome.failure, None);
    assert_eq!(sizes, [10, 10, 5]);
    assert_eq!((outcome.samples_acknowledged, plan.acknowledged.load(Ordering::Relaxed)), (25, 25));
}

#[tokio::test]
async fn an_obedient_agent_runs_a_command_once() {
    let command_id = Uuid::from_u128(7);
    let execute = Execute {
        command_id,
        command: "uname -a".to_owned(),
        stdin: None,
        timeout_seconds: 60,
        by: None,
        asker: None,
        signed: None,
    };
    let execute = ServiceMessage::Execute(execute);
    let last = ServiceMessage::ResultAck { command_id };
    let mut service = FakeService::start_ordering(vec![execute.clone(), execute, last]).await;
    let socket = AgentSocket::connect(service.address, &service.enrolled).await.unwrap();
    let told = Arc::new(CommandTimes::new());
    let before = told.last();
    let (stop_source, stop) = StopSource::new();

    let running = tokio::spawn(Obedient { socket, told: told.clone() }.run(stop));
    let (output, result) = (service.answers.recv().await.unwrap(), service.answers.recv().await.unwrap());
    let AgentMessage::CommandOutput(output) = output else { panic!("not an output") };
    let AgentMessage::CommandResult(result) = result else { panic!("not a result") };
    stop_source.stop();
    let obeyed = running.await.unwrap();

    assert_eq!((output.command_id, output.data.as_str(), output.offset), (command_id, OUTPUT, Some(0)));
    assert_eq!((result.command_id, result.status.as_str(), result.exit_code), (command_id, "succeeded", Some(0)));
    assert_eq!((obeyed.commands, obeyed.failure), (1, None));
    assert!(told.last() > before);
    assert!(service.answers.try_recv().is_err());
}
