//! The HTTP server. It is assembled here in the way of actix-web's `HttpServer`, because that one does not hand out its
//! connections, and those of open sockets leave it (`ws::handover`).

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use actix_http::{HttpService, Protocol};
use actix_web::dev::{Server, Service, ServiceFactory, fn_factory, forward_ready};
use actix_web::middleware::{Compress, Condition, from_fn};
use actix_web::test::init_service;
use actix_web::{App, web};
use futures_util::future::LocalBoxFuture;
use tokio::net::TcpStream;
use tracing_actix_web::TracingLogger;

use super::{StartupError, sockets};
use crate::http;
use crate::http::middleware::QuietSpan;
use crate::http::openapi::Document;
use crate::observe::Exporter;
use crate::state::{Counter, State};
use crate::ws::agent_session;
use crate::ws::handover::{LINGER, Loan};

/// Serves on a listening socket. After the stop command, running requests may take up to `shutdown`.
pub fn serve(
    state: &State,
    listener: TcpListener,
    workers: Option<usize>,
    shutdown: Duration,
) -> Result<Server, StartupError> {
    let data = web::Data::new(state.clone());
    let for_sessions = web::Data::new(agent_session::Services::of(state));
    let document = web::Data::new(Document::default());
    let exporter = web::Data::new(Exporter::install());
    let new_app = move || {
        App::new()
            .app_data(data.clone())
            .app_data(for_sessions.clone())
            .app_data(document.clone())
            .app_data(exporter.clone())
            .wrap(Compress::default())
            .wrap(from_fn(http::middleware::around))
            .wrap(Condition::new(http::middleware::are_spans_read(), TracingLogger::<QuietSpan>::new()))
            .configure(http::configure)
    };
    let mut server = Server::build().disable_signals().shutdown_timeout(shutdown.as_secs());
    if let Some(workers) = workers {
        server = server.workers(workers);
    }
    let (address, stopping) = (listener.local_addr().map_err(StartupError::Server)?, server.graceful_shutdown_signal());
    let (on_connect, connections) = (sockets::on_connect(state), state.limits.connections.clone());
    let of_worker = move || {
        let (new_app, stopping) = (new_app.clone(), stopping.clone());
        let http = HttpService::<Loan, _, _>::build()
            .on_connect_ext(on_connect.clone())
            .local_addr(address)
            .client_disconnect_timeout(LINGER)
            // A client that disconnects needs no answer: its calls to agents are cancelled immediately, and not after
            // half a minute. Work that must not be left half done runs in its own task.
            .h1_allow_half_closed(false)
            .graceful_shutdown_signal(move || {
                let signal = stopping.clone();
                async move { signal.notified().await }
            })
            .finish(fn_factory(move || {
                let app = new_app();
                // Meant for tests, but the only function of actix-web that turns an application into a service without
                // `HttpServer`.
                async move { Ok::<_, ()>(init_service(app).await) }
            }));
        Lending { service: http, connections: connections.clone() }
    };
    Ok(server.listen("signalbox", listener, of_worker).map_err(StartupError::Server)?.run())
}

/// A connection as the HTTP library takes it.
type Connection = (Loan, Protocol, Option<SocketAddr>);

/// A service for incoming connections, which lends them to the HTTP library and counts them.
struct Lending<S> {
    service: S,
    connections: Counter,
}

impl<S> ServiceFactory<TcpStream> for Lending<S>
where
    S: ServiceFactory<Connection, Config = ()> + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Config = ();
    type Service = Lending<S::Service>;
    type InitError = S::InitError;
    type Future = LocalBoxFuture<'static, Result<Self::Service, S::InitError>>;

    fn new_service(&self, (): ()) -> Self::Future {
        let (made, connections) = (self.service.new_service(()), self.connections.clone());
        Box::pin(async move { Ok(Lending { service: made.await?, connections }) })
    }
}

impl<S: Service<Connection>> Service<TcpStream> for Lending<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    forward_ready!(service);

    fn call(&self, stream: TcpStream) -> Self::Future {
        let peer = stream.peer_addr().ok();
        self.service.call((Loan::new(stream, self.connections.opened()), Protocol::Http1, peer))
    }
}
