//! The runtime in which the service runs.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use actix_web::rt::System;
use tokio::runtime::Builder;

/// How long what still runs on other threads may delay the end: a lookup of a name can hang for many seconds, and cannot be
/// stopped.
const LAST_WORK: Duration = Duration::from_millis(250);

/// Runs a future in an actix system of its own.
///
/// What still runs at its end is dropped inside the system's runtime: a task that holds a connection to the database returns it
/// by spawning another task, and would panic where there is no runtime.
pub fn in_system<F: Future>(future: F) -> io::Result<F::Output> {
    let runtime = Arc::new(Builder::new_current_thread().enable_all().build()?);
    let system = System::with_tokio_rt(|| runtime.clone());
    let outcome = system.block_on(future);
    let inside = runtime.enter();
    drop(system);
    drop(inside);
    if let Some(runtime) = Arc::into_inner(runtime) {
        runtime.shutdown_timeout(LAST_WORK);
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use tokio::runtime::Handle;
    use tokio::sync::oneshot;

    use super::in_system;

    #[test]
    fn what_still_runs_at_the_end_is_dropped_inside_the_runtime() {
        struct Held(mpsc::Sender<bool>);
        impl Drop for Held {
            fn drop(&mut self) {
                let _ = self.0.send(Handle::try_current().is_ok());
            }
        }
        let (dropped, was_inside) = mpsc::channel();
        in_system(async move {
            let held = Held(dropped);
            actix_web::rt::spawn(async move {
                let _held = held;
                pending::<()>().await;
            });
            tokio::task::yield_now().await;
        })
        .unwrap();
        assert_eq!(was_inside.try_iter().collect::<Vec<_>>(), [true]);
    }

    #[test]
    fn work_on_another_thread_that_does_not_end_does_not_keep_the_system() {
        let (release, hanging) = mpsc::channel::<()>();
        let (ended, has_ended) = mpsc::channel();
        thread::spawn(move || {
            let outcome = in_system(async move {
                let (begin, has_begun) = oneshot::channel();
                tokio::task::spawn_blocking(move || {
                    begin.send(()).unwrap();
                    _ = hanging.recv();
                });
                has_begun.await.unwrap();
            });
            ended.send(outcome.is_ok()).unwrap();
        });

        assert_eq!(has_ended.recv_timeout(Duration::from_secs(60)), Ok(true));
        drop(release);
    }
}
