//! A service that takes every key and acknowledges every batch, for the tests of the agents.

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use signalbox_protocol::agent::{AgentMessage, AuthResponse, Metrics, ServiceMessage};
use signalbox_protocol::{Decoded, Encoding};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async};
use uuid::Uuid;

use crate::fixture::Enrolled;

pub struct FakeService {
    pub address: SocketAddr,
    pub enrolled: Enrolled,
    /// Every batch that arrived, acknowledged or not.
    pub batches: mpsc::Receiver<Metrics>,
    /// The other messages of agents.
    pub answers: mpsc::Receiver<AgentMessage>,
}

/// What a fake service does.
struct Behaviour {
    server_id: Uuid,
    lost: &'static [usize],
    /// Said to each agent once it is authenticated.
    orders: Vec<ServiceMessage>,
    batches: mpsc::Sender<Metrics>,
    answers: mpsc::Sender<AgentMessage>,
}

impl FakeService {
    /// `lost`: the numbers, from 0 on, of the batches at which the connection breaks before they are acknowledged.
    pub async fn start(lost: &'static [usize]) -> Self {
        Self::start_with(lost, Vec::new()).await
    }

    /// A service that has something to say to its agents.
    pub async fn start_ordering(orders: Vec<ServiceMessage>) -> Self {
        Self::start_with(&[], orders).await
    }

    async fn start_with(lost: &'static [usize], orders: Vec<ServiceMessage>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let enrolled = Enrolled { server_id: Uuid::from_u128(42), key: "sbk_test".into() };
        let (batch_sender, batches) = mpsc::channel(10_000);
        let (answer_sender, answers) = mpsc::channel(10_000);
        let server_id = enrolled.server_id;
        let behaviour = Behaviour { server_id, lost, orders, batches: batch_sender, answers: answer_sender };
        tokio::spawn(async move {
            let mut arrived = 0;
            while let Ok((stream, _)) = listener.accept().await {
                serve(stream, &behaviour, &mut arrived).await;
            }
        });
        Self { address, enrolled, batches, answers }
    }
}

/// One connection at a time is enough for one agent.
async fn serve(stream: TcpStream, behaviour: &Behaviour, arrived: &mut usize) {
    let mut socket = accept_async(stream).await.unwrap();
    while let Some(Ok(Message::Binary(bytes))) = socket.next().await {
        match Encoding::MessagePack.decode(&bytes).unwrap() {
            Decoded::Known(AgentMessage::Auth(_)) => {
                let accepted = AuthResponse::accepted(behaviour.server_id, Uuid::nil(), 5.0, 0);
                answer(&mut socket, ServiceMessage::AuthResponse(accepted)).await;
                for order in &behaviour.orders {
                    answer(&mut socket, order.clone()).await;
                }
            }
            Decoded::Known(AgentMessage::Metrics(metrics)) => {
                let seq = metrics.seq;
                behaviour.batches.send(metrics).await.unwrap();
                *arrived += 1;
                if behaviour.lost.contains(&(*arrived - 1)) {
                    return;
                }
                answer(&mut socket, ServiceMessage::Ack { seq }).await;
            }
            Decoded::Known(other) => behaviour.answers.send(other).await.unwrap(),
            Decoded::Unknown => panic!("an unknown message"),
        }
    }
}

async fn answer(socket: &mut WebSocketStream<TcpStream>, message: ServiceMessage) {
    let bytes = Encoding::MessagePack.encode(&message).unwrap();
    // The agent may be gone already.
    socket.send(Message::Binary(bytes)).await.ok();
}
