//! Accepting connections, with patience for slow clients and a clean end.

use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::config::Config;

/// Serves `router` until `stop` is done; then accepts nothing new and gives what is in flight the time to end.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    config: &Config,
    stop: impl Future<Output = ()>,
) {
    let (stopping, stopped) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let connection = connection(stream, router.clone(), config.limits.patience, stopped.clone());
                    connections.spawn(connection);
                }
                Err(error) => {
                    // Mostly too many open files: others must end first.
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    drop(stopping);
    let drain = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(config.drain, drain).await.is_err() {
        tracing::warn!("requests were still in flight at the end");
    }
}

async fn connection(
    stream: TcpStream,
    router: Router,
    patience: Duration,
    mut stopped: watch::Receiver<()>,
) {
    let _ = stream.set_nodelay(true); // Without it answers are only slower.
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(patience)
            .serve_connection(TokioIo::new(stream), service)
    );
    let result = tokio::select! {
        result = &mut connection => result,
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}
