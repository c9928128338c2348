//! Handshakes: two or three messages over any transport, after which both sides have a session.

use std::sync::Mutex;

use wraith_crypto::NodeId;
use wraith_session::{
    HANDSHAKE_PAYLOAD_BYTES_MAX, Handshake, HandshakeBuilder, Protocol, ReadOutcome, StaticKey,
    system_rng,
};
use zeroize::Zeroizing;

use super::session::{self, wraith_session_t};
use crate::border::{Call, c_enum, c_struct, export};
use crate::bytes::wraith_bytes_t;
use crate::identity::wraith_identity_t;
use crate::options::{set, switch};
use crate::status::wraith_status_t::{WRAITH_INVALID_STATE, WRAITH_REPLAYED};
use crate::status::{Failure, Outcome};
use crate::table::{Kind, Table};

/// Maximum length of a handshake message, in bytes.
pub const WRAITH_HANDSHAKE_MESSAGE_MAX: usize = 65535;
/// Maximum payload of a handshake message, in bytes.
pub const WRAITH_HANDSHAKE_PAYLOAD_MAX: usize = 61440;
const _: () = assert!(WRAITH_HANDSHAKE_PAYLOAD_MAX == HANDSHAKE_PAYLOAD_BYTES_MAX);

/// One side of a handshake.
pub type wraith_handshake_t = u64;

c_enum! {
    /// The next step of a handshake.
    pub enum wraith_turn_t {
        /// This side writes a message.
        WRAITH_TURN_WRITE = 1,
        /// This side reads a message.
        WRAITH_TURN_READ = 2,
        /// The handshake is complete: call `wraith_handshake_session`.
        WRAITH_TURN_OVER = 3,
    }
}

c_struct! {
    /// Options of a handshake.
    pub struct wraith_handshake_options_t {
        /// `sizeof(wraith_handshake_options_t)`.
        pub struct_size: usize,
        /// 1 for the side that writes first.
        pub is_initiator: u32,
        /// Must be 0.
        pub reserved: u32,
        /// Protocol name, such as `Noise_XXhfs_25519+MLKEM768_ChaChaPoly_BLAKE2s`, which is the
        /// default if empty. Supported: XX, XK, IK, NK, IX; psk0 to psk3; with or without `hfs` and
        /// `+MLKEM768`; AESGCM, ChaChaPoly; SHA256, SHA512, BLAKE2s, BLAKE2b.
        pub protocol: wraith_bytes_t,
        /// The identity of this side, which the handshake sends and proves. 0 for none.
        pub identity: wraith_identity_t,
        /// Instead of an identity: 32 secret bytes, a plain Noise key.
        pub local_key: wraith_bytes_t,
        /// The required NodeId (32 bytes) of the other side. In patterns with a pre-known static
        /// key, it is that key.
        pub peer: wraith_bytes_t,
        /// Instead of `peer`: the other side's public Noise key (32 bytes), in patterns with a
        /// pre-known static key.
        pub remote_key: wraith_bytes_t,
        /// The pre-shared key (32 bytes); set if and only if the protocol name has a psk.
        pub psk: wraith_bytes_t,
        /// Prologue: data beside the protocol that must be equal on both sides. It is not sent.
        pub prologue: wraith_bytes_t,
    }
}

static wraith_handshake_t: Table<Mutex<Handshake>> = Table::new(Kind::Handshake);

/// Reads an optional key of the caller.
fn key(call: &Call, field: wraith_bytes_t) -> Outcome<Option<[u8; 32]>> {
    match call.field(field)? {
        [] => Ok(None),
        _ => call.array(field.data, field.len).map(|key| Some(*key)),
    }
}

fn start(call: &Call, options: &wraith_handshake_options_t) -> Outcome<Handshake> {
    let protocol = match call.text_field(options.protocol)? {
        "" => Protocol::DEFAULT,
        name => name
            .parse()
            .map_err(|error: wraith_session::UnknownProtocol| Failure::input(error.to_string()))?,
    };
    let is_initiator = switch(options.is_initiator)?;
    let mut builder: HandshakeBuilder = match is_initiator {
        true => Handshake::initiator(protocol),
        false => Handshake::responder(protocol),
    };
    let local_key = key(call, options.local_key)?.map(Zeroizing::new);
    let has_identity = options.identity != 0;
    builder = match (has_identity, local_key) {
        (true, None) => builder.local(&StaticKey::of(&*wraith_identity_t.get(options.identity)?)),
        (false, Some(key)) => builder.local(&StaticKey::from_secret(key)),
        (false, None) => builder,
        (true, Some(_)) => {
            return Err(Failure::input("an identity and a key in place of one are both given"));
        }
    };
    builder = set(builder, key(call, options.peer)?.map(NodeId), HandshakeBuilder::peer);
    builder = set(builder, key(call, options.remote_key)?, HandshakeBuilder::remote);
    let psk = key(call, options.psk)?.map(Zeroizing::new);
    builder = set(builder, psk, HandshakeBuilder::psk);
    Ok(builder.prologue(call.field(options.prologue)?).start(&mut system_rng()?)?)
}

const UNKNOWN: &str = "the other side has not sent it yet";

export!(
    /// Starts a handshake and generates the ephemeral keys of this side.
    pub fn wraith_handshake_new(
        call: &Call,
        options: Options<wraith_handshake_options_t>,
    ) -> Outcome<wraith_handshake_t> {
        let options = options.ok_or_else(|| Failure::input("a handshake needs options"))?;
        wraith_handshake_t.add(start(call, &options)?)
    }

    /// Returns the next step: a `wraith_turn_t`.
    pub fn wraith_handshake_turn(handshake: Locked<wraith_handshake_t>) -> Outcome<u32> {
        let turn = match (handshake.is_finished(), handshake.is_my_turn()) {
            (true, _) => wraith_turn_t::WRAITH_TURN_OVER,
            (false, true) => wraith_turn_t::WRAITH_TURN_WRITE,
            (false, false) => wraith_turn_t::WRAITH_TURN_READ,
        };
        Ok(turn as u32)
    }

    /// Returns the length of the next message with a payload of `payload_len` bytes. Changes
    /// nothing.
    pub fn wraith_handshake_write_len(
        handshake: Locked<wraith_handshake_t>,
        payload_len: usize,
    ) -> Outcome<usize> {
        Ok(handshake.written_len(payload_len)?)
    }

    /// Writes the next message. The protection of the payload depends on pattern and message; the
    /// first payload of XX is sent in the clear.
    pub fn wraith_handshake_write(
        handshake: Locked<wraith_handshake_t>,
        payload: Bytes,
        out: Buffer,
    ) -> Outcome {
        out.room(handshake.written_len(payload.len())?)?;
        out.write(&handshake.write(payload)?)
    }

    /// Reads the next message of the other side and returns its payload, which may be empty.
    ///
    /// - `WRAITH_UNAUTHENTIC`: this is not the right message, which may still come.
    /// - `WRAITH_REPLAYED`: this is a repetition of the previous message. Answer it with
    ///   `wraith_handshake_repeat`.
    pub fn wraith_handshake_read(
        handshake: Locked<wraith_handshake_t>,
        message: Bytes,
        out: Buffer,
    ) -> Outcome {
        out.room(handshake.payload_len(message.len()))?;
        let ReadOutcome::Payload(payload) = handshake.read(message)? else {
            return Err(Failure::new(WRAITH_REPLAYED, "this message was read before"));
        };
        out.write(&Zeroizing::new(payload))
    }

    /// Returns the last written message again.
    pub fn wraith_handshake_repeat(handshake: Locked<wraith_handshake_t>, out: Buffer) -> Outcome {
        let nothing = || Failure::new(WRAITH_INVALID_STATE, "nothing was written yet");
        out.write(handshake.repeat().ok_or_else(nothing)?)
    }

    /// Returns the transcript hash: equal on both sides, and different in any two handshakes.
    /// Complete at the end of the handshake.
    pub fn wraith_handshake_hash(handshake: Locked<wraith_handshake_t>, out: Buffer) -> Outcome {
        out.write(handshake.hash())
    }

    /// Returns the other side's public Noise key (32 bytes); `WRAITH_NOT_FOUND` while it is
    /// unknown.
    pub fn wraith_handshake_remote_key(
        handshake: Locked<wraith_handshake_t>,
        out: Buffer,
    ) -> Outcome {
        out.write_found(handshake.remote_key(), UNKNOWN)
    }

    /// Returns the other side's NodeId (32 bytes), once it is proved; `WRAITH_NOT_FOUND` before
    /// that, and for a side without an identity.
    pub fn wraith_handshake_peer(handshake: Locked<wraith_handshake_t>, out: Buffer) -> Outcome {
        out.write_found(handshake.peer().map(|id| id.0), UNKNOWN)
    }

    /// Returns the NodeId (32 bytes) that the other side claims; `WRAITH_NOT_FOUND` until it has
    /// sent one. A claim proves nothing: the first message of IK and IX can be replayed, and anyone
    /// can make that of IX. The first message of the resulting session that opens proves the claim.
    pub fn wraith_handshake_claimed_peer(
        handshake: Locked<wraith_handshake_t>,
        out: Buffer,
    ) -> Outcome {
        out.write_found(handshake.claimed_peer().map(|id| id.0), UNKNOWN)
    }

    /// Returns the session, once, when the handshake is complete. The handshake remains valid, to
    /// answer a repeated message.
    pub fn wraith_handshake_session(
        handshake: Locked<wraith_handshake_t>,
    ) -> Outcome<wraith_session_t> {
        session::insert(handshake.split()?)
    }

    /// Frees the handshake and wipes its secrets. Its session remains valid.
    pub fn wraith_handshake_free(handshake: wraith_handshake_t) -> Outcome {
        wraith_handshake_t.free(handshake)
    }
);
