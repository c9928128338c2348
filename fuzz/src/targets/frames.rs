//! Frames of an opened packet. Invariant: their number is bounded, ranges are ordered, and no frame
//! reaches outside the packet.

use wraith_core::frame::{Frame, Frames};

pub(crate) fn run(input: &[u8]) {
    let mut count = 0;
    let mut failed = false;
    for frame in Frames::new(input) {
        assert!(!failed, "nothing follows an error");
        count += 1;
        match frame {
            Ok(Frame::Ack(ack)) => {
                let mut below = None;
                for range in ack.ranges() {
                    assert!(range.start() <= range.end());
                    assert!(below.is_none_or(|below| range.end() + 1 < below), "not adjacent");
                    below = Some(*range.start());
                }
            }
            Ok(Frame::Stream { offset, data, .. }) => {
                assert!(offset + data.len() as u64 <= wraith_core::varint::MAX);
                assert!(input.as_ptr_range().contains(&data.as_ptr()) || data.is_empty());
            }
            Ok(_) => {}
            Err(_) => failed = true,
        }
    }
    assert!(count <= input.len().max(1), "every frame takes a byte");
    assert!(failed || !input.is_empty(), "an empty packet is an error");
}
