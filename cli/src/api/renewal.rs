//! Renews a login. A refresh token works once, and using a spent one ends the login: processes that run at the same time take
//! turns, and each first checks if another one has renewed it. Only for 10 s the service gives the same answer once more, because an
//! answer may get lost, and with it the only token that still works.

use std::pin::pin;
use std::time::Duration;

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use super::{Api, http};
use crate::context::{Context, Contexts, Credential, Token};
use crate::error::{Failure, Refusal};
use crate::output;

/// So long an answer may take before it is asked for again: early enough for a repetition that takes seconds, too.
const REPEAT_AFTER: Duration = Duration::from_secs(5);

/// What signing in and refreshing answer.
#[derive(Deserialize)]
pub struct TokenPair {
    pub access_token: Token,
    pub refresh_token: Token,
}

/// A renewed login that could not be written.
pub struct Unwritten {
    /// The access token that the file has.
    written: Token,
    pair: TokenPair,
}

impl Api {
    /// Whether this is a login of the program's own.
    pub fn can_renew(&self) -> bool {
        matches!(self.target.context.credential, Credential::Login { .. }) && self.target.name.is_some()
    }

    /// A newer access token than `spent`.
    pub async fn renew(&self, spent: &Token) -> Result<Token, Failure> {
        let (Some(name), Some(store)) = (&self.target.name, &self.store) else {
            return Err(Failure::failed("the token has expired"));
        };
        // One at a time: each that waits for the lock of the file has a thread, and who holds it needs one to look up the service.
        let mut unwritten = self.renewing.lock().await;
        let bearer = self.bearer();
        if bearer != *spent {
            return Ok(bearer);
        }
        let contexts = store.lock().await?;
        let mut all = contexts.read()?;
        // Using the spent token of the file would end the login.
        if let Some(Unwritten { written, pair }) = &*unwritten
            && tokens_of(&all, name, &self.target.context)?.0 == *written
        {
            replace_tokens(&mut all, name, pair);
        }
        let (access_token, refresh_token) = tokens_of(&all, name, &self.target.context)?;
        if access_token != *spent {
            return Ok(self.remember(access_token));
        }
        // Nothing is spent where nothing can be kept: this fails on a full disk, and without the right to write.
        contexts.write(&all)?;
        *unwritten = None;
        let pair = or_repeated(|| self.refresh(&refresh_token)).await?;
        replace_tokens(&mut all, name, &pair);
        let renewed = self.remember(pair.access_token.clone());
        if let Err(failure) = contexts.write(&all) {
            let login = self.target.login_call();
            output::complain(&format!(
                "the renewed login is lost when this call ends: {failure}: sign in again with `{login}`"
            ));
            *unwritten = Some(Unwritten { written: access_token, pair });
        }
        Ok(renewed)
    }

    async fn refresh(&self, refresh_token: &Token) -> Result<TokenPair, Failure> {
        let url = self.target.context.url.api("/auth/refresh");
        let request = self.http.request(Method::POST, url).timeout(http::ANSWER_TIMEOUT);
        let request = request.json(&json!({"refresh_token": refresh_token.reveal()}));
        let body = http::body(request.send().await.map_err(http::unreachable)?).await;
        let body = body.map_err(|failure| self.with_advice(failure))?;
        serde_json::from_slice(&body).map_err(|_| Failure::failed("the answer is not one of Signalbox's API"))
    }

    /// Ends a login that only this has: no context does, so nobody else renews it. A login that has ended already is none.
    pub async fn end_login(&self) -> Result<(), Failure> {
        let Credential::Login { access_token, refresh_token, .. } = &self.target.context.credential else {
            return Ok(());
        };
        let is_refused = |failure: &Failure| matches!(failure, Failure::Refused(refusal) if refusal.status == 401);
        match self.log_out(access_token).await {
            Err(failure) if is_refused(&failure) => {}
            ended => return ended,
        }
        // The access token may only be too old.
        match self.refresh(refresh_token).await {
            Ok(pair) => self.log_out(&pair.access_token).await,
            Err(failure) if is_refused(&failure) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    async fn log_out(&self, access_token: &Token) -> Result<(), Failure> {
        let url = self.target.context.url.api("/auth/logout");
        let request = self.http.request(Method::POST, url).timeout(http::ANSWER_TIMEOUT);
        self.send(request, access_token).await.map(drop)
    }

    fn remember(&self, token: Token) -> Token {
        self.bearer.lock().clone_from(&token);
        token
    }

    /// What to do about a refusal that concerns the token.
    pub fn with_advice(&self, failure: Failure) -> Failure {
        let Failure::Refused(refusal) = failure else { return failure };
        let target = &self.target;
        let advice = match (refusal.status, refusal.code.as_str()) {
            (401, _) if target.name.is_none() => "check SIGNALBOX_TOKEN".to_owned(),
            (401, _) => format!("sign in again with `{}`", target.login_call()),
            // What uses the token keeps it.
            (403, "token_not_allowed") => {
                format!("`{}` signs in with your account, as a context of its own", target.new_login_call())
            }
            (403, "step_up_required" | "second_factor_required") => {
                format!("prove who you are with `{}`", target.login_call())
            }
            (421, _) => "use the address of the service's --public-url".to_owned(),
            _ => return Failure::Refused(refusal),
        };
        let detail = format!("{}: {advice}", refusal.detail.trim_end_matches('.'));
        Failure::Refused(Refusal { detail, ..refusal })
    }
}

/// The answer to a request, or to its repetition: at once if the answer got lost, or when it takes too long.
async fn or_repeated<T, F>(ask: impl Fn() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut first = pin!(ask());
    match timeout(REPEAT_AFTER, &mut first).await {
        Ok(answer) if is_lost(&answer) => return ask().await,
        Ok(answer) => return answer,
        Err(_) => {}
    }
    let mut second = pin!(ask());
    tokio::select! {
        answer = &mut first => if is_lost(&answer) { second.await } else { answer },
        answer = &mut second => if is_lost(&answer) { first.await } else { answer },
    }
}

fn is_lost<T>(answer: &Result<T, Failure>) -> bool {
    answer.as_ref().is_err_and(Failure::is_passing)
}

/// The tokens as the file has them now; none if the context is another one by now.
fn tokens_of(contexts: &Contexts, name: &str, ours: &Context) -> Result<(Token, Token), Failure> {
    match contexts.contexts.get(name) {
        Some(Context { url, credential: Credential::Login { access_token, refresh_token, .. }, .. })
            if *url == ours.url =>
        {
            Ok((access_token.clone(), refresh_token.clone()))
        }
        _ => Err(Failure::failed(format!("the context {name:?} has changed since this call began: try again"))),
    }
}

fn replace_tokens(contexts: &mut Contexts, name: &str, pair: &TokenPair) {
    if let Some(Credential::Login { access_token, refresh_token, .. }) =
        contexts.contexts.get_mut(name).map(|context| &mut context.credential)
    {
        access_token.clone_from(&pair.access_token);
        refresh_token.clone_from(&pair.refresh_token);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use futures_util::future::join_all;
    use parking_lot::Mutex;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::runtime::Builder;
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::BLOCKING_THREADS;
    use crate::context::{Store, Target};

    fn token(text: &str) -> Token {
        Token::parse(text).unwrap()
    }

    /// A login whose access token is `old`, at a service on this machine. The service is named, so it has to be looked up.
    async fn signed_in(directory: &Path, port: u16) -> Api {
        let credential = Credential::Login {
            username: "ada".to_owned(),
            access_token: token("old"),
            refresh_token: token("unspent"),
        };
        let context = Context { url: format!("http://localhost:{port}").parse().unwrap(), ca_file: None, credential };
        let contexts = Contexts { current: None, contexts: [("a".to_owned(), context.clone())].into() };
        let store = Store::at(directory);
        store.lock().await.unwrap().write(&contexts).unwrap();
        Api::new(Target { name: Some("a".to_owned()), context }, Some(store)).unwrap()
    }

    /// Answers every request with the access token `new`, after `before` got the request.
    async fn serve(listener: TcpListener, before: impl Fn(String)) {
        let body = r#"{"access_token": "new", "refresh_token": "next"}"#;
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"}") {
                assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
            }
            before(String::from_utf8(request).unwrap());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    }

    #[test]
    fn more_sockets_than_threads_renew_at_once() {
        let runtime =
            Builder::new_current_thread().enable_all().max_blocking_threads(BLOCKING_THREADS).build().unwrap();
        runtime.block_on(async {
            let room = tempfile::tempdir().unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let api = signed_in(room.path(), listener.local_addr().unwrap().port()).await;
            tokio::spawn(serve(listener, drop));
            let spent = api.bearer();

            let renewals = join_all((0..=BLOCKING_THREADS).map(|_| api.renew(&spent)));
            let renewed = timeout(Duration::from_secs(60), renewals).await.unwrap();

            assert!(renewed.into_iter().all(|renewed| renewed.unwrap() == token("new")));
        });
    }

    #[tokio::test]
    async fn a_login_that_cannot_be_kept_serves_until_the_call_ends() {
        let room = tempfile::tempdir().unwrap();
        let directory = room.path().join("signalbox");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = signed_in(&directory, listener.local_addr().unwrap().port()).await;
        tokio::spawn(serve(listener, move |_| fs::remove_dir_all(&directory).unwrap()));

        let renewed = api.renew(&token("old")).await.unwrap();

        assert_eq!((renewed, api.bearer()), (token("new"), token("new")));
    }

    #[tokio::test]
    async fn a_login_that_could_not_be_kept_is_renewed_with_its_own_token_and_kept() {
        let room = tempfile::tempdir().unwrap();
        let (directory, away) = (room.path().join("signalbox"), room.path().join("away"));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = signed_in(&directory, listener.local_addr().unwrap().port()).await;
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let (asked, place, elsewhere) = (Arc::clone(&requests), directory.clone(), away.clone());
        let before = move |request| {
            if asked.lock().is_empty() {
                fs::rename(&place, &elsewhere).unwrap();
            }
            asked.lock().push(request);
        };
        tokio::spawn(serve(listener, before));
        api.renew(&token("old")).await.unwrap();
        fs::rename(&away, &directory).unwrap();

        api.renew(&token("new")).await.unwrap();

        let last = requests.lock().pop().unwrap();
        assert!(last.ends_with(r#"{"refresh_token":"next"}"#), "{last}");
        let kept = tokens_of(&Store::at(&directory).read().unwrap(), "a", &api.target.context).unwrap();
        assert_eq!(kept, (token("new"), token("next")));
    }

    /// What requests lead to that take so many seconds and bring this, or whose answer gets lost: the answer, the number of requests,
    /// and the seconds until then.
    async fn answered(replies: [(u64, Option<&'static str>); 2]) -> (Option<&'static str>, usize, u64) {
        let (begin, asked) = (Instant::now(), Cell::new(0));
        let ask = || {
            let (seconds, answer) = replies[asked.replace(asked.get() + 1)];
            async move {
                sleep(Duration::from_secs(seconds)).await;
                answer.ok_or_else(|| Failure::Unreachable("lost".to_owned()))
            }
        };
        let answer = or_repeated(ask).await.ok();
        (answer, asked.get(), begin.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_gets_lost_or_takes_too_long_is_asked_for_once_more() {
        for (replies, expected) in [
            ([(4, Some("first")), (0, Some("second"))], (Some("first"), 1, 4)),
            ([(1, None), (1, Some("second"))], (Some("second"), 2, 2)),
            ([(1_000, None), (1, Some("second"))], (Some("second"), 2, 6)),
            ([(7, Some("first")), (1_000, None)], (Some("first"), 2, 7)),
            ([(7, Some("first")), (1, None)], (Some("first"), 2, 7)),
            ([(6, None), (3, Some("second"))], (Some("second"), 2, 8)),
            ([(1, None), (1, None)], (None, 2, 2)),
        ] {
            assert_eq!(answered(replies).await, expected, "{replies:?}");
        }
    }

    #[tokio::test]
    async fn a_refusal_is_an_answer() {
        let asked = Cell::new(0);

        let refused = or_repeated(|| {
            asked.set(asked.get() + 1);
            async { Err::<(), _>(Failure::failed("refused")) }
        });
        let refused = refused.await.unwrap_err();

        assert_eq!((refused.to_string().as_str(), asked.get()), ("refused", 1));
    }
}
