//! Answers the service's requests, with a closed list of methods.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::{AbortHandle, Abortable, BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;
use signalbox_protocol::agent::{
    AgentInfo, LIST_RECORDINGS, OFFER_UPDATE, READ_RECORDING, Request, RequestError, Response,
};
use uuid::Uuid;

use crate::docker::Docker;
use crate::logs::Logs;
use crate::policy::Policy;
use crate::recordings::Recordings;
use crate::updates::Updates;

/// The most concurrent requests; more are refused, so that a faulty service cannot exhaust the machine.
const MAX_RUNNING: usize = 16;
/// The default time limit of a request, and the longest that it may name.
const TIMEOUT: Duration = Duration::from_secs(60);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(600);

type Call = BoxFuture<'static, Result<Value, RequestError>>;

/// The methods of an agent.
pub trait Methods: Send {
    /// Starts a call for `by`, if that is known. None for a method that is not on the list.
    fn call(&self, method: &str, params: Value, by: Option<String>) -> Option<Call>;
}

/// The agent's methods: what it is, whatever its policy, and what the policy permits.
pub struct AgentMethods {
    pub info: AgentInfo,
    pub policy: Policy,
    pub logs: Logs,
    pub docker: Docker,
    pub recordings: Recordings,
    pub updates: Updates,
}

impl Methods for AgentMethods {
    fn call(&self, method: &str, params: Value, by: Option<String>) -> Option<Call> {
        let result = match method {
            "agent.info" => serde_json::to_value(&self.info),
            "agent.policy" => serde_json::to_value(&self.policy),
            "logs.query" => return Some(self.logs.clone().query(params, by).boxed()),
            LIST_RECORDINGS => return Some(self.recordings.clone().list(params).boxed()),
            READ_RECORDING => return Some(self.recordings.clone().read(params, by).boxed()),
            OFFER_UPDATE => return Some(std::future::ready(self.updates.offer(params, by)).boxed()),
            _ => return self.docker.call(method, params, by),
        };
        let result = result.map_err(|error| RequestError::new("agent_error", &error.to_string()));
        Some(std::future::ready(result).boxed())
    }
}

/// The requests of one connection. They end with it.
pub struct Requests<M> {
    methods: M,
    running: FuturesUnordered<BoxFuture<'static, (Uuid, Option<Response>)>>,
    handles: HashMap<Uuid, AbortHandle>,
}

impl<M: Methods> Requests<M> {
    pub fn new(methods: M) -> Self {
        Self { methods, running: FuturesUnordered::new(), handles: HashMap::new() }
    }

    /// Starts a request, or returns the refusal at once.
    pub fn start(&mut self, request: Request) -> Option<Response> {
        let Request { request_id, method, params, timeout_ms, by } = request;
        let refuse = |code, detail: &str| Some(Response::new(request_id, Err(RequestError::new(code, detail))));
        if self.handles.contains_key(&request_id) {
            return refuse("duplicate_request", "a request of this id is running");
        }
        if self.running.len() >= MAX_RUNNING {
            return refuse("agent_busy", "the agent has too many requests to answer");
        }
        let Some(call) = self.methods.call(&method, params, by) else {
            return refuse("unknown_method", "this agent does not know the method");
        };
        let limit = timeout_ms.map_or(TIMEOUT, Duration::from_millis).min(LONGEST_TIMEOUT);
        let (handle, registration) = AbortHandle::new_pair();
        self.handles.insert(request_id, handle);
        let answer = async move {
            let late = || Err(RequestError::new("agent_timeout", "the agent was not done in time"));
            let outcome = tokio::time::timeout(limit, call).await.unwrap_or_else(|_| late());
            Response::new(request_id, outcome)
        };
        self.running.push(Abortable::new(answer, registration).map(move |done| (request_id, done.ok())).boxed());
        None
    }

    /// Stops a request that nobody waits for any more. There will be no answer.
    pub fn cancel(&mut self, request_id: Uuid) {
        if let Some(handle) = self.handles.get(&request_id) {
            handle.abort();
        }
    }

    /// The next answer. Waits for ever while nothing runs.
    pub async fn answer(&mut self) -> Response {
        loop {
            match self.running.next().await {
                Some((request_id, response)) => {
                    self.handles.remove(&request_id);
                    if let Some(response) = response {
                        return response;
                    }
                }
                None => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::{Config, Roots};
    use crate::policy::Switch;

    /// `wait` never ends, `echo` returns its parameters.
    struct Slow;

    impl Methods for Slow {
        fn call(&self, method: &str, params: Value, _: Option<String>) -> Option<Call> {
            match method {
                "wait" => Some(std::future::pending().boxed()),
                "echo" => Some(std::future::ready(Ok(params)).boxed()),
                _ => None,
            }
        }
    }

    fn request(number: u128, method: &str, timeout_ms: Option<u64>) -> Request {
        Request {
            request_id: Uuid::from_u128(number),
            method: method.into(),
            params: json!({"n": 1}),
            timeout_ms,
            by: None,
        }
    }

    fn refused(number: u128, code: &str, detail: &str) -> Response {
        Response::new(Uuid::from_u128(number), Err(RequestError::new(code, detail)))
    }

    #[tokio::test]
    async fn an_agent_describes_itself_and_its_policy() {
        let policy = Policy { logs: Switch::On, log_paths: vec!["/var/log".into()], ..Policy::default() };
        let info = AgentInfo { version: "1".into(), ..AgentInfo::default() };
        let docker = Docker::new(&policy, crate::signed::Gate::default());
        let logs = Logs::new(policy.clone(), docker.clone(), Roots::default());
        let config = Config { policy: policy.clone(), ..Config::default() };
        let recordings = Recordings::open(&config, None);
        let updates = Updates::new(&config);
        let methods = AgentMethods { info: info.clone(), policy, logs, docker, recordings, updates };
        let mut requests = Requests::new(methods);

        assert_eq!(requests.start(request(1, "agent.info", None)), None);
        let told_info = requests.answer().await;
        assert_eq!(requests.start(request(2, "agent.policy", None)), None);
        let told_policy = requests.answer().await;

        assert_eq!(told_info.into_outcome(), Ok(serde_json::to_value(info).unwrap()));
        let expected = json!({
            "processes": "on", "commands": "off", "docker": "read", "docker_host": null,
            "logs": "on", "log_paths": ["/var/log"], "terminal": "off", "record": "off",
        });
        assert_eq!(told_policy.into_outcome(), Ok(expected));
    }

    #[tokio::test]
    async fn a_method_that_is_not_on_the_list_is_refused() {
        let mut requests = Requests::new(Slow);

        let refusal = requests.start(request(1, "shell.run", None));

        assert_eq!(refusal, Some(refused(1, "unknown_method", "this agent does not know the method")));
    }

    #[tokio::test]
    async fn a_seventeenth_request_at_once_is_refused_until_one_ends() {
        let mut requests = Requests::new(Slow);
        (0..15).for_each(|number| assert_eq!(requests.start(request(number, "wait", None)), None));
        assert_eq!(requests.start(request(15, "echo", None)), None);

        let refusal = requests.start(request(16, "echo", None));
        let answer = requests.answer().await;
        let accepted = requests.start(request(16, "echo", None));

        assert_eq!(refusal, Some(refused(16, "agent_busy", "the agent has too many requests to answer")));
        assert_eq!(answer, Response::new(Uuid::from_u128(15), Ok(json!({"n": 1}))));
        assert_eq!(accepted, None);
    }

    #[tokio::test]
    async fn a_cancelled_request_frees_its_place_and_has_no_answer() {
        let mut requests = Requests::new(Slow);
        assert_eq!(requests.start(request(1, "wait", None)), None);

        requests.cancel(Uuid::from_u128(1));
        assert_eq!(requests.start(request(2, "echo", None)), None);
        let answer = requests.answer().await;

        assert_eq!(answer.request_id, Uuid::from_u128(2));
        assert!(requests.running.len() <= 1 && !requests.handles.contains_key(&Uuid::from_u128(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_ends_at_its_own_time_limit() {
        let mut requests = Requests::new(Slow);
        let started = tokio::time::Instant::now();

        assert_eq!(requests.start(request(1, "wait", Some(250))), None);
        let answer = requests.answer().await;

        assert_eq!(answer, refused(1, "agent_timeout", "the agent was not done in time"));
        assert_eq!(started.elapsed(), Duration::from_millis(250));
    }

    #[tokio::test]
    async fn one_id_is_one_request() {
        let mut requests = Requests::new(Slow);
        assert_eq!(requests.start(request(1, "wait", None)), None);

        let refusal = requests.start(request(1, "echo", None));

        assert_eq!(refusal, Some(refused(1, "duplicate_request", "a request of this id is running")));
    }
}
