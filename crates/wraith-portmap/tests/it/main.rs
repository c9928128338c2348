//! The client against test routers, each on its own loopback address and on the protocols' real
//! ports.

mod grants;
mod hostile;
mod loss;
mod router;
