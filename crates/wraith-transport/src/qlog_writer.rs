//! Event logs of connections, written to files in qlog's JSON-SEQ format.
//!
//! The I/O thread puts events of fixed size into a bounded queue and never waits. Events that do
//! not fit are dropped and counted, and the log marks the gap. One writer thread formats the events
//! and writes them to the files. Invariant: a log keeps the order of its events.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wraith_core::qlog::{Event, LogStart, Sink, SinkFactory, json_seq};
use wraith_core::{Role, Time};

/// Queue length in events: a fifth of a second at 100,000 packets per second, about 5 MB.
const QUEUE_EVENTS: usize = 1 << 15;
/// Maximum number of logged connections: unknown peers may connect, too, and must not fill the disk
/// with files.
const LOGS_MAX: u64 = 64;
/// Bytes of text collected before a write.
const WRITE_BYTES: usize = 64 * 1024;
/// Maximum time that text waits for a write if nothing follows.
const FLUSH_AFTER: Duration = Duration::from_millis(500);

/// Writes the logs of connections: the first to the given path, further ones beside it with a
/// number in their name.
///
/// This writer is the [`SinkFactory`] of a configuration. Once its last clone and the last
/// connection are dropped, the writer thread has received all events; [`Self::finish`] waits until
/// they are in the files.
#[derive(Clone, Debug)]
pub struct QlogWriter {
    queue: SyncSender<Message>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    opened: AtomicU64,
    dropped: AtomicU64,
    error: Mutex<Option<io::Error>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A message to the writer thread.
#[derive(Debug)]
enum Message {
    Begin { file: File, role: Role, start: Time, unix_time: Duration, number: u64 },
    Event { number: u64, now: Time, event: Event, dropped: u64 },
    End { number: u64, now: Time, dropped: u64 },
    Finish,
}

impl QlogWriter {
    /// Creates the file at `path`, which by convention ends in `.sqlog`, and starts the writer
    /// thread.
    ///
    /// # Errors
    /// The file cannot be created, or the thread cannot be started.
    pub fn to_file(path: &Path) -> io::Result<Self> {
        create(path)?;
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            opened: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            error: Mutex::new(None),
            thread: Mutex::new(None),
        });
        let (queue, messages) = sync_channel(QUEUE_EVENTS);
        let weak = Arc::downgrade(&shared);
        let thread = thread::Builder::new().name("wraith-qlog".to_owned()).spawn(move || {
            if let Err(error) = write(&messages)
                && let Some(shared) = weak.upgrade()
            {
                *lock(&shared.error) = Some(error);
            }
        })?;
        *lock(&shared.thread) = Some(thread);
        Ok(Self { queue, shared })
    }

    /// Returns the number of events dropped so far because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Waits until all events so far are written, and ends the thread. Later events are dropped.
    ///
    /// # Errors
    /// The first write error.
    pub fn finish(&self) -> io::Result<()> {
        // An error means that the thread has already ended.
        let _ = self.queue.send(Message::Finish);
        if let Some(thread) = lock(&self.shared.thread).take() {
            thread.join().map_err(|_| io::Error::other("the qlog writer thread panicked"))?;
        }
        lock(&self.shared.error).take().map_or(Ok(()), Err)
    }
}

impl SinkFactory for QlogWriter {
    fn sink(&self, start: &LogStart) -> Option<Box<dyn Sink>> {
        let number = self.shared.opened.fetch_add(1, Ordering::Relaxed) + 1;
        if number > LOGS_MAX {
            return None;
        }
        // The first file exists already, created by `to_file`; no other existing file is
        // overwritten.
        let path = numbered(&self.shared.path, number);
        let created = if number == 1 { create(&path) } else { create_new(&path) };
        let file = match created {
            Ok(file) => file,
            Err(error) => {
                lock(&self.shared.error).get_or_insert(error);
                return None;
            }
        };
        let unix_time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let begin = Message::Begin { file, role: start.role, start: start.now, unix_time, number };
        self.queue.try_send(begin).ok()?;
        let (queue, shared) = (self.queue.clone(), Arc::clone(&self.shared));
        Some(Box::new(QueueSink { queue, shared, number, dropped: 0, last: start.now }))
    }
}

/// Opens files for this user only: they hold addresses and times of connections.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

fn create(path: &Path) -> io::Result<File> {
    private().create(true).truncate(true).open(path)
}

fn create_new(path: &Path) -> io::Result<File> {
    private().create_new(true).open(path)
}

/// Returns `path` for the first connection, `path` with `-2` before its extension for the second,
/// and so on.
fn numbered(path: &Path, number: u64) -> PathBuf {
    if number == 1 {
        return path.to_owned();
    }
    let mut name = OsString::from(path.file_stem().unwrap_or_default());
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// A connection's end of the queue.
#[derive(Debug)]
struct QueueSink {
    queue: SyncSender<Message>,
    shared: Arc<Shared>,
    number: u64,
    /// Events dropped since the last one that was queued.
    dropped: u64,
    last: Time,
}

impl Sink for QueueSink {
    fn record(&mut self, now: Time, event: &Event) {
        self.last = now;
        let (number, dropped) = (self.number, self.dropped);
        match self.queue.try_send(Message::Event { number, now, event: *event, dropped }) {
            Ok(()) => self.dropped = 0,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.dropped += 1;
                self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for QueueSink {
    fn drop(&mut self) {
        let (number, now, dropped) = (self.number, self.last, self.dropped);
        // If the queue is full, the writer completes the file when it ends.
        let _ = self.queue.try_send(Message::End { number, now, dropped });
    }
}

/// An open log.
struct Log {
    number: u64,
    file: File,
    start: Time,
    text: Vec<u8>,
}

impl Log {
    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

/// Writes until the last sender is gone or [`Message::Finish`] arrives. Collects text until there
/// is much of it, or until no event has arrived for a while.
fn write(messages: &Receiver<Message>) -> io::Result<()> {
    let mut logs: Vec<Log> = Vec::new();
    loop {
        let message = match messages.try_recv() {
            Ok(message) => message,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) if logs.iter().all(|log| log.text.is_empty()) => {
                let Ok(message) = messages.recv() else { break };
                message
            }
            Err(TryRecvError::Empty) => match messages.recv_timeout(FLUSH_AFTER) {
                Ok(message) => message,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    logs.iter_mut().try_for_each(Log::flush)?;
                    continue;
                }
            },
        };
        match message {
            Message::Begin { file, role, start, unix_time, number } => {
                let mut text = Vec::with_capacity(2 * WRITE_BYTES);
                json_seq::write_header(&mut text, role, unix_time);
                logs.push(Log { number, file, start, text });
            }
            Message::Event { number, now, event, dropped } => {
                let Some(log) = logs.iter_mut().find(|log| log.number == number) else { continue };
                if dropped > 0 {
                    json_seq::write_dropped(&mut log.text, log.start, now, dropped);
                }
                json_seq::write_event(&mut log.text, log.start, now, &event);
                if log.text.len() >= WRITE_BYTES {
                    log.flush()?;
                }
            }
            Message::End { number, now, dropped } => {
                let Some(index) = logs.iter().position(|log| log.number == number) else {
                    continue;
                };
                let mut log = logs.swap_remove(index);
                if dropped > 0 {
                    json_seq::write_dropped(&mut log.text, log.start, now, dropped);
                }
                log.flush()?;
            }
            Message::Finish => break,
        }
    }
    logs.iter_mut().try_for_each(Log::flush)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> LogStart {
        LogStart::new(
            Time::from_nanos(5_000_000),
            Role::Initiator,
            std::net::SocketAddr::from(([192, 0, 2, 1], 7)).into(),
        )
    }

    fn lost(pn: u64) -> Event {
        Event::PacketLost { pn, bytes: 1200 }
    }

    /// Returns a path in an existing folder of its own.
    fn path(test: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("wraith-qlog-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder.join("log.sqlog")
    }

    #[test]
    fn each_connection_has_a_file_and_finishing_writes_everything() {
        let path = path("files");
        let writer = QlogWriter::to_file(&path).unwrap();
        let mut sinks = [writer.sink(&start()).unwrap(), writer.sink(&start()).unwrap()];
        for pn in 0..10_000 {
            for sink in &mut sinks {
                sink.record(Time::from_nanos(5_000_000 + pn * 1000), &lost(pn));
            }
        }
        writer.finish().unwrap();
        let dropped = writer.dropped();
        let mut lines = 0;
        for file in [path.clone(), path.with_file_name("log-2.sqlog")] {
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.starts_with("\u{1e}{\"qlog_version\":\"0.3\""));
            assert!(text.contains("{\"time\":0.001000,\"name\":\"recovery:packet_lost\""));
            lines += text.lines().filter(|line| line.contains("packet_lost")).count() as u64;
        }
        assert_eq!(lines + dropped, 20_000);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn dropped_events_are_counted_and_marked_in_the_log() {
        let path = path("full");
        let (queue, messages) = sync_channel(3);
        let shared = Arc::new(Shared {
            path: path.clone(),
            opened: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            error: Mutex::new(None),
            thread: Mutex::new(None),
        });
        let writer = QlogWriter { queue, shared };
        let mut sink = writer.sink(&start()).unwrap();
        // The start and two events fill the queue, because there is no reader.
        (0..10).for_each(|pn| sink.record(start().now, &lost(pn)));
        assert_eq!(writer.dropped(), 8);
        let (later, reader) = (writer.clone(), thread::spawn(move || write(&messages)));
        loop {
            let before = later.dropped();
            sink.record(start().now, &lost(10));
            if later.dropped() == before {
                break;
            }
            thread::yield_now();
        }
        let dropped = writer.dropped();
        drop((sink, writer, later));
        reader.join().unwrap().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let note = format!("\"name\":\"wraith:events_dropped\",\"data\":{{\"count\":{dropped}}}");
        assert!(text.contains(&note), "{text}");
        assert_eq!(text.lines().filter(|line| line.contains("packet_lost")).count(), 3);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
