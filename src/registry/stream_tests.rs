use std::collections::VecDeque;
use std::future::{Future, ready};
use std::pin::Pin;

use parking_lot::Mutex;
use serde_json::json;

use super::super::tests::{LONG, Scene};
use super::super::{Advertisement, Order, RemoteRouter};
use super::*;

/// Another instance, which keeps the streams that are opened and answers messages in this order.
struct Other {
    streams: Mutex<Vec<StreamSink>>,
    answers: Mutex<VecDeque<Result<(), CallError>>>,
}

impl RemoteRouter for Other {
    fn take(&self, _: Uuid, order: Order) {
        match order {
            Order::Open(opening) => self.streams.lock().push(opening.sink),
            Order::Tell(_, Some(sent)) => {
                let answer = self.answers.lock().pop_front().unwrap();
                // The stream ends with the last answer.
                if self.answers.lock().is_empty() {
                    self.streams.lock().clear();
                }
                sent.send(answer).unwrap();
            }
            // The end of the stream.
            _ => {}
        }
    }

    fn hold(&self, _: Uuid) -> Pin<Box<dyn Future<Output = Advertisement> + Send + '_>> {
        Box::pin(ready(Advertisement::default()))
    }
}

/// What granting credit leads to where another instance answers like this.
async fn granted(answers: &[Result<(), CallError>]) -> Result<(), CallError> {
    let answers = Mutex::new(answers.iter().cloned().collect());
    let scene = Scene::with(LONG, Arc::new(Other { streams: Mutex::default(), answers }));
    let start = json!({ "stream_id": Uuid::now_v7(), "source": "system", "credit": 1 });
    let stream = scene.registry.open_log(scene.server_id, serde_json::from_value(start).unwrap()).unwrap();
    stream.grant(1).await
}

#[actix::test]
async fn credit_that_may_not_arrive_is_an_error() {
    for error in [CallError::Unreachable, CallError::Timeout] {
        assert_eq!(granted(&[Err(error.clone()), Ok(())]).await, Err(error));
    }
}

#[actix::test]
async fn credit_waits_for_a_home_that_is_back_in_a_moment() {
    let away = || Err(CallError::Offline);

    assert_eq!(granted(&[away(), away(), Ok(()), Ok(())]).await, Ok(()));
    assert_eq!(granted(&[away(), away(), away()]).await, Ok(()), "the stream has ended");
}
