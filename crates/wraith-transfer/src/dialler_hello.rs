//! A sender that dialled says which transfer it comes with, before the receiver fetches it (SPEC §10.12).
//!
//! `4 ‖ version(1) ‖ capability secret(16)` on a stream of its own, and its end. Everything after it is as if the receiver
//! had dialled: [`crate::receive`] there with this secret, [`crate::serve`] here.

use wraith_transport::Connection;

use crate::stream_kind::StreamKind;

const KIND: u8 = StreamKind::DiallerHello.byte();
const VERSION: u8 = 1;
const LEN: usize = 18;

/// Tells the receiver which secret to fetch with. False if the connection is gone.
pub async fn send_dialler_hello(connection: &Connection, secret: &[u8; 16]) -> bool {
    let mut bytes = [0; LEN];
    bytes[..2].copy_from_slice(&[KIND, VERSION]);
    bytes[2..].copy_from_slice(secret);
    let Ok((mut stream, _unused)) = connection.open_stream().await else { return false };
    stream.write_all(&bytes).await.is_ok() && stream.finish().is_ok()
}

/// The secret that the sender on this connection comes with; `None` if it says nonsense or leaves. How long it may take is the
/// caller's affair ([`crate::limits::NEGOTIATION_TIMEOUT`] is usual).
pub async fn receive_dialler_hello(connection: &Connection) -> Option<[u8; 16]> {
    let (_unused, mut stream) = connection.accept_stream().await.ok()?;
    let mut bytes = [0; LEN];
    stream.read_exact(&mut bytes).await.ok()?;
    let ended = matches!(stream.read_chunk().await, Ok(None));
    let [KIND, VERSION, secret @ ..] = bytes else { return None };
    ended.then_some(secret)
}
