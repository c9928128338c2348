//! A node: an identity, its meeting places (at which it finds peers), and the threads that drive
//! its transfers.

use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use wraith::state::{ContactAddress, ContactName, StateDir};
use wraith::{Lan, Node, NodeId};

use crate::border::{Call, c_struct, export};
use crate::bytes::wraith_bytes_t;
use crate::identity::{WRAITH_NODE_ID_BYTES, wraith_identity_t};
use crate::options::{path, switch};
use crate::status::wraith_status_t::WRAITH_OTHER;
use crate::status::{Failure, Outcome};
use crate::table::{Kind, Table};
use crate::waiting::{TaskResult, wait_until};

/// Threads that drive transfers. Packets and files move on other threads.
const WORKERS: usize = 2;
/// How long the end of a node waits until the peers of its transfers are notified.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// A node.
pub type wraith_node_t = u64;

c_struct! {
    /// Options of a node. All zeros but `struct_size` is a new identity that meets peers on the
    /// local network, stores nothing, and uses no server.
    pub struct wraith_node_options_t {
        /// `sizeof(wraith_node_options_t)`.
        pub struct_size: usize,
        /// Its identity; 0 for the identity of its state, or a new one.
        pub identity: wraith_identity_t,
        /// Folder for identity, contacts and unfinished transfers; empty to store nothing.
        pub state_folder: wraith_bytes_t,
        /// Rendezvous server, `HOST` or `HOST:PORT`; empty for none.
        pub rendezvous: wraith_bytes_t,
        /// 1 to turn off discovery on the local network.
        pub lan_off: u32,
        /// 1 to use the Mainline DHT as well.
        pub dht: u32,
    }
}

impl wraith_node_options_t {
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>(),
        identity: 0,
        state_folder: wraith_bytes_t::EMPTY,
        rendezvous: wraith_bytes_t::EMPTY,
        lan_off: 0,
        dht: 0,
    };
}

pub(crate) static wraith_node_t: Table<NodeRuntime> = Table::new(Kind::Node);

/// Dropped by a thread of the caller or by a callback thread, never by a thread of the runtime:
/// threads of the runtime hold no [`Arc`](std::sync::Arc) of it.
pub(crate) struct NodeRuntime {
    pub node: Node,
    runtime: Option<Runtime>,
    /// Each running task holds a receiver.
    running: watch::Sender<()>,
    /// Parent of the stop tokens of all transfers.
    pub stop: CancellationToken,
}

impl NodeRuntime {
    fn handle(&self) -> &Handle {
        self.runtime.as_ref().expect("it is taken when this is dropped").handle()
    }

    /// Runs `work` on the node's threads.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let running = self.running.subscribe();
        drop(self.handle().spawn(async move {
            work.await;
            drop(running);
        }));
    }

    /// Runs `work` on the node's threads and returns its result to come.
    pub fn run<T: Send + Sync + 'static>(
        &self,
        work: impl Future<Output = Outcome<T>> + Send + 'static,
    ) -> TaskResult<T> {
        let (result_tx, result) = watch::channel(None);
        self.spawn(async move {
            result_tx.send_replace(Some(work.await));
        });
        TaskResult(result)
    }

    /// Runs `work` on the node's threads and waits for it. Works on any thread, also inside another
    /// runtime.
    pub fn wait_for<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Outcome<T> {
        let (reply, replied) = oneshot::channel();
        self.spawn(async move {
            let _ = reply.send(work.await);
        });
        let ended = || Failure::new(WRAITH_OTHER, "the node's threads have ended");
        wait_until(None, replied).and_then(Result::ok).ok_or_else(ended)
    }
}

impl Drop for NodeRuntime {
    fn drop(&mut self) {
        self.stop.cancel();
        wait_until(Instant::now().checked_add(CLOSE_TIMEOUT), self.running.closed());
        let Some(runtime) = self.runtime.take() else { return };
        // Inside a runtime of the caller, waiting for another runtime is not allowed.
        match Handle::try_current() {
            Err(_) => runtime.shutdown_timeout(SHUTDOWN_TIMEOUT),
            Ok(_) => runtime.shutdown_background(),
        }
    }
}

fn build(call: &Call, options: &wraith_node_options_t) -> Outcome<NodeRuntime> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(2)
        .thread_name("wraith")
        .enable_all()
        .build()
        .map_err(|error| Failure::new(WRAITH_OTHER, format!("cannot start threads: {error}")))?;
    let mut builder = Node::builder().runtime(runtime.handle().clone());
    if options.identity != 0 {
        builder = builder.identity((*wraith_identity_t.get(options.identity)?).clone());
    }
    let (folder, server) =
        (call.field(options.state_folder)?, call.text_field(options.rendezvous)?);
    if !folder.is_empty() {
        builder = builder.state(StateDir::in_folder(path(folder)?));
    }
    if !server.is_empty() {
        builder = builder.rendezvous(server);
    }
    if switch(options.lan_off)? {
        builder = builder.lan(Lan::Off);
    }
    if switch(options.dht)? {
        builder = builder.dht(Vec::new());
    }
    let node = {
        let _entered = runtime.enter();
        builder.build()?
    };
    let stop = CancellationToken::new();
    Ok(NodeRuntime { node, runtime: Some(runtime), running: watch::Sender::new(()), stop })
}

/// A node for tests that stores nothing and does no discovery.
#[cfg(test)]
pub(crate) fn isolated() -> std::sync::Arc<NodeRuntime> {
    let options = wraith_node_options_t { lan_off: 1, ..wraith_node_options_t::DEFAULT };
    std::sync::Arc::new(build(&crate::border::tests::call(), &options).unwrap())
}

export!(
    /// Creates a node. `options` may be NULL.
    pub fn wraith_node_new(
        call: &Call,
        options: Options<wraith_node_options_t>,
    ) -> Outcome<wraith_node_t> {
        let options = options.unwrap_or(wraith_node_options_t::DEFAULT);
        wraith_node_t.insert(build(call, &options)?)
    }

    /// Returns the NodeId: 32 bytes.
    pub fn wraith_node_id(node: Object<wraith_node_t>, out: Buffer) -> Outcome {
        out.write(node.node.id().as_bytes())
    }

    /// Adds a contact: `name` stands for the identity `node_id` (32 bytes), which listens at
    /// `address` (`HOST` or `HOST:PORT`; may be empty). The identity of a name is never replaced.
    pub fn wraith_node_add_contact(
        node: Object<wraith_node_t>,
        name: Text,
        node_id: Array<WRAITH_NODE_ID_BYTES>,
        address: Text,
    ) -> Outcome {
        let input = |error: &dyn std::fmt::Display| Failure::input(error.to_string());
        let name: ContactName = name.parse().map_err(|error| input(&error))?;
        let id = NodeId(*node_id);
        id.noise_public().map_err(|error| input(&error))?;
        let addresses = match address {
            "" => Vec::new(),
            text => vec![text.parse::<ContactAddress>().map_err(|error| input(&error))?],
        };
        node.node.contacts().change::<_, Failure>(|book| {
            book.add(&name, id).map_err(|error| input(&error))?;
            book.set_addresses(id, &addresses);
            Ok(())
        })
    }

    /// Cancels all transfers of the node and all searches for services, and waits until their peers
    /// are notified and received data is stored, at most 5 s. Does not wait for callbacks. Services
    /// accept no more callers; raw connections stay open. Transfers and services that start later
    /// fail with `WRAITH_CANCELLED`. A program calls this before it ends; it may be called in a
    /// callback.
    pub fn wraith_node_shutdown(node: Object<wraith_node_t>) -> Outcome {
        node.stop.cancel();
        let closed = node.node.clone();
        node.wait_for(async move { closed.close().await })
    }

    /// Frees the node. Its transfers, services, connections and streams continue until they are
    /// freed as well. Freeing the last of them waits for at most two seconds until the peers are
    /// notified.
    pub fn wraith_node_free(node: wraith_node_t) -> Outcome {
        wraith_node_t.free(node)
    }
);
