//! The first message of a sender that dialled: names its transfer before the receiver fetches it
//! (SPEC §10.12).
//!
//! The message is `4 ‖ version(1) ‖ capability secret(16)`, on a stream that carries nothing else.
//! The capability secret authorizes one transfer. From then on everything is as if the receiver had
//! dialled: the receiver calls [`crate::receive`] with this secret, the sender [`crate::serve`].

use wraith_transport::Connection;

use crate::stream_kind::StreamKind;

const KIND: u8 = StreamKind::DiallerHello.byte();
const VERSION: u8 = 1;
const LEN: usize = 18;

/// Sends the capability secret that the receiver must fetch with. Returns false if the connection
/// is lost.
pub async fn send_dialler_hello(connection: &Connection, secret: &[u8; 16]) -> bool {
    let mut bytes = [0; LEN];
    bytes[..2].copy_from_slice(&[KIND, VERSION]);
    bytes[2..].copy_from_slice(secret);
    let Ok((mut stream, _unused)) = connection.open_stream().await else { return false };
    stream.write_all(&bytes).await.is_ok() && stream.finish().is_ok()
}

/// Receives the capability secret from the sender on this connection. `None` if the message is
/// invalid or the connection ends. The caller sets the time limit
/// ([`crate::limits::NEGOTIATION_TIMEOUT`] is usual).
pub async fn receive_dialler_hello(connection: &Connection) -> Option<[u8; 16]> {
    let (_unused, mut stream) = connection.accept_stream().await.ok()?;
    let mut bytes = [0; LEN];
    stream.read_exact(&mut bytes).await.ok()?;
    let ended = matches!(stream.read_chunk().await, Ok(None));
    let [KIND, VERSION, secret @ ..] = bytes else { return None };
    ended.then_some(secret)
}
