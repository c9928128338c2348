//! Two endpoints on this machine; one behaviour per module.

mod admitted;
mod async_io;
mod bulk;
mod cancel;
mod closing;
mod datagrams;
mod doors;
mod echo;
mod hostile;
mod movers;
mod paths;
mod small_streams;
mod support;
mod traces;
