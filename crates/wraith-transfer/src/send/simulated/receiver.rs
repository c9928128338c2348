//! A receiver with a script, without a disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use wraith_core::{Connection, StreamId, Time};
use wraith_files::{CHUNK_BYTES, Entry, Root, RootBuilder, Tree, small_root};

use super::streams::{Streams, take_prefixed};
use super::{Decision, SENDER, Script, TRANSFER, receiver, root_of};
use crate::content_digest::ContentDigest;
use crate::exception::Exception;
use crate::message::{Accept, Message};
use crate::receipt::Receipt;
use crate::record::Header;
use crate::wanted::{WantWriter, Wanted};

/// A receiver that acts as its script says, and checks all that it gets.
#[derive(Debug)]
pub(super) struct Receiver {
    script: Arc<Script>,
    pub(super) streams: Streams,
    control: Option<StreamId>,
    wants: WantWriter,
    listed: u32,
    hasher: blake3::Hasher,
    manifest: Option<Root>,
    arriving: BTreeMap<u32, Arriving>,
    /// Files that are complete: received, or identical.
    pub(super) verified: BTreeMap<u32, Root>,
    is_signed: bool,
}

/// A file of which something was wanted.
#[derive(Debug, Default)]
struct Arriving {
    root: RootBuilder,
    chunks: u64,
    end: Option<(u64, Root)>,
}

impl Receiver {
    pub(super) fn new(script: Arc<Script>) -> Self {
        Self {
            script,
            streams: Streams::default(),
            control: None,
            wants: WantWriter::default(),
            listed: 0,
            hasher: blake3::Hasher::new(),
            manifest: None,
            arriving: BTreeMap::new(),
            verified: BTreeMap::new(),
            is_signed: false,
        }
    }

    pub(super) fn start(&mut self, connection: &mut Connection) {
        let control = connection.open_stream().expect("the first stream");
        self.control = Some(control);
        let accept = Accept { have: None, rate: None, parallel: None };
        self.streams.write(control, Message::Accept(accept).to_bytes());
    }

    pub(super) fn drive(&mut self, now: Time, connection: &mut Connection) {
        let Some(control) = self.control else { return };
        self.streams.read(now, connection);
        for (id, mut bytes) in std::mem::take(&mut self.streams.incoming) {
            // The sender opens the manifest first.
            if id.sequence() == 0 {
                self.read_manifest(&mut bytes);
            } else {
                while self.read_record(&mut bytes) {}
            }
            self.streams.incoming.insert(id, bytes);
        }
        if let Some(want) = self.wants.take() {
            self.streams.write(control, Message::Want(want).to_bytes());
        }
        let wanted = self.script.files.iter();
        let wanted = wanted.filter(|(_, decision)| matches!(decision, Decision::Want(_))).count();
        if self.manifest.is_some() && self.verified.len() == wanted && !self.is_signed {
            self.is_signed = true;
            let receipt = Message::Receipt(self.receipt().to_body());
            self.streams.write(control, receipt.to_bytes());
        }
        self.streams.flush(connection);
    }

    fn read_manifest(&mut self, bytes: &mut Vec<u8>) {
        while self.manifest.is_none() {
            if bytes.first_chunk() == Some(&[0; 4]) {
                let Some(hash) = bytes.get(4..36) else { return };
                assert_eq!(hash, self.hasher.finalize().as_bytes());
                self.manifest = hash.try_into().ok();
                return;
            }
            let Some(entry) = take_prefixed(bytes) else { return };
            self.hasher.update(&(entry.len() as u32).to_be_bytes()).update(&entry);
            let (entry, _) = Entry::decode(&entry).unwrap();
            let (content, decision) = &self.script.files[self.listed as usize];
            assert_eq!(entry.size(), content.len() as u64);
            match decision {
                Decision::Want(wanted) => {
                    self.arriving.insert(self.listed, Arriving::of(content, wanted));
                    self.wants.add(self.listed, wanted, false);
                }
                Decision::Skip => self.wants.except(self.listed, Exception::Skipped),
            }
            self.listed += 1;
        }
    }

    /// Reads and verifies a record. Returns false if more bytes must arrive first.
    fn read_record(&mut self, bytes: &mut Vec<u8>) -> bool {
        let Some(len) = bytes.first().map(|kind| Header::len_of(*kind).unwrap()) else {
            return false;
        };
        let Some(header) = bytes.get(..len).map(|header| Header::parse(header).unwrap()) else {
            return false;
        };
        let Some(body) = bytes.get(len..len + header.body_len()).map(<[u8]>::to_vec) else {
            return false;
        };
        bytes.drain(..len + body.len());
        let entry = header.entry();
        let file = self.arriving.get_mut(&entry).expect("only wanted files are sent, once");
        match header {
            Header::Whole { root, .. } => {
                assert_eq!(small_root(&body), root);
                file.end = Some((0, root));
            }
            Header::Chunk { index, cv, .. } => {
                assert_eq!(Tree::Blake3.chunk_cv(index, &[&body]), cv);
                file.root.set(index, cv);
                file.chunks += 1;
            }
            Header::End { chunks, root, .. } => file.end = Some((chunks, root)),
            other => panic!("{other:?}"),
        }
        if let Some((chunks, root)) = file.end.filter(|(chunks, _)| *chunks == file.chunks) {
            let (content, _) = &self.script.files[entry as usize];
            assert_eq!(root, root_of(content), "entry {entry}");
            if chunks > 0 {
                assert_eq!(file.root.finish(content.len() as u64), Some(root));
            }
            self.arriving.remove(&entry);
            self.verified.insert(entry, root);
        }
        true
    }

    fn receipt(&self) -> Receipt {
        let mut contents = ContentDigest::new();
        let (mut bytes, mut kept) = (0, 0);
        for (number, (content, decision)) in (0..).zip(&self.script.files) {
            match (self.verified.get(&number), decision) {
                (Some(root), _) => {
                    contents.add(number, root);
                    bytes += content.len() as u64;
                }
                (None, _) => {
                    contents.except(number, Exception::Skipped);
                    kept += 1;
                }
            }
        }
        let receipt = Receipt {
            manifest: self.manifest.expect("the manifest ended"),
            contents: contents.digest(),
            verified: self.verified.len() as u64 + u64::from(self.script.lies),
            kept,
            bytes,
            ..Receipt::unsigned(TRANSFER, SENDER, 0)
        };
        receipt.signed(&receiver())
    }
}

impl Arriving {
    /// A file with the chunks that the receiver has already.
    fn of(content: &[u8], wanted: &Wanted) -> Self {
        let mut root = RootBuilder::new();
        if let Wanted::Chunks(missing) = wanted {
            for (index, chunk) in (0..).zip(content.chunks(CHUNK_BYTES)) {
                if !missing.contains(index) {
                    root.set(index, Tree::Blake3.chunk_cv(index, &[chunk]));
                }
            }
        }
        Self { root, ..Self::default() }
    }
}
