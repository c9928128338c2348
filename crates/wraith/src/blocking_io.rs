//! Blocking readers and writers over asynchronous ones. The engine of a transfer has threads of its
//! own, and blocks them.

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Handle;

/// An asynchronous reader or writer, and the runtime that polls it.
pub(crate) struct Blocking<T> {
    inner: Pin<Box<T>>,
    runtime: Handle,
}

impl<T> Blocking<T> {
    /// Wraps `inner`. Panics outside of a tokio runtime.
    pub fn new(inner: T) -> Self {
        Self { inner: Box::pin(inner), runtime: Handle::current() }
    }
}

impl<T: AsyncRead> Read for Blocking<T> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut out = ReadBuf::new(out);
        let inner = &mut self.inner;
        self.runtime.block_on(poll_fn(|cx| inner.as_mut().poll_read(cx, &mut out)))?;
        Ok(out.filled().len())
    }
}

impl<T: AsyncWrite> Write for Blocking<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let inner = &mut self.inner;
        self.runtime.block_on(poll_fn(|cx| inner.as_mut().poll_write(cx, bytes)))
    }

    /// Flushes and shuts down: the engine calls this once, at the end. Without the shutdown, an
    /// encoder or an encrypted stream would lack its end.
    fn flush(&mut self) -> io::Result<()> {
        let inner = &mut self.inner;
        self.runtime.block_on(async {
            poll_fn(|cx| inner.as_mut().poll_flush(cx)).await?;
            poll_fn(|cx| inner.as_mut().poll_shutdown(cx)).await
        })
    }
}
