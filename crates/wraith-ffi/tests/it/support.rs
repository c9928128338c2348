//! Setup shared by several tests.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use wraith_ffi::{Node, NodeOptions};

/// Longer than every test takes, so that a hanging test fails.
const PATIENCE: Duration = Duration::from_secs(60);

pub async fn within<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future).await.expect("nothing came of this in time")
}

/// Returns a node that is reachable on this machine only.
pub fn node() -> Arc<Node> {
    let (lan, listen) = (Some("off".into()), Some("127.0.0.1:0".into()));
    Node::new(NodeOptions { lan, listen, ..NodeOptions::default() }).unwrap()
}
