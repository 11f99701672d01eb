//! The runtime in which the service runs.

use std::future::Future;

use actix_web::rt::System;

/// Runs a future in an actix system of its own.
///
/// What still runs at its end is dropped inside the system's runtime: a task that holds a connection to the database returns it
/// by spawning another task, and would panic where there is no runtime.
pub fn in_system<F: Future>(future: F) -> F::Output {
    let system = System::new();
    let outcome = system.block_on(future);
    let runtime = system.runtime().tokio_runtime().handle().clone();
    let _inside = runtime.enter();
    drop(system);
    outcome
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::mpsc;

    use tokio::runtime::Handle;

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
        });
        assert_eq!(was_inside.try_iter().collect::<Vec<_>>(), [true]);
    }
}
