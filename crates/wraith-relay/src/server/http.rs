//! Prometheus metrics and a health check: `GET /metrics` and `GET /healthz` over HTTP/1.1, one
//! request per connection, on a separate address.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::metrics::Metrics;

/// Longest request; monitoring clients send a few hundred bytes.
const REQUEST_MAX: usize = 4096;
/// Time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Most concurrent requests.
const REQUESTS_MAX: usize = 32;
/// Pause after the system ran out of file descriptors.
const PAUSE_WITHOUT_FILES: Duration = Duration::from_millis(20);

/// Answers requests until the future is dropped.
pub async fn serve_metrics(listener: TcpListener, metrics: Arc<Metrics>) {
    let room = Arc::new(Semaphore::new(REQUESTS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, from)) => {
                let metrics = Arc::clone(&metrics);
                tokio::spawn(async move {
                    let answered = timeout(TIMEOUT, answer_request(stream, from, &metrics)).await;
                    drop((answered, permit));
                });
            }
            Err(_) => sleep(PAUSE_WITHOUT_FILES).await,
        }
    }
}

async fn answer_request(
    mut stream: TcpStream,
    from: SocketAddr,
    metrics: &Metrics,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > REQUEST_MAX || stream.read_buf(&mut request).await? == 0 {
            debug!(%from, "no request");
            return Ok(());
        }
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let (status, body) = match line {
        b"GET /metrics HTTP/1.1" | b"GET /metrics HTTP/1.0" => ("200 OK", metrics.to_text()),
        b"GET /healthz HTTP/1.1" | b"GET /healthz HTTP/1.0" if metrics.draining.get() > 0 => {
            ("503 Service Unavailable", "draining\n".to_owned())
        }
        b"GET /healthz HTTP/1.1" | b"GET /healthz HTTP/1.0" => ("200 OK", "ok\n".to_owned()),
        _ => ("404 Not Found", "there are /metrics and /healthz\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await?;
    stream.shutdown().await
}
