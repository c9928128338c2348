//! The client against routers of the tests' own, each on a loopback address of its own and on the protocols' true ports.

mod grants;
mod hostile;
mod loss;
mod router;
