//! The links of the lab. The words of their boxes are documented in `lab/netlab`. Loss and
//! reordering affect the direction of the data; the return direction has the same rate and delay.

/// A link, and the duration of its runs.
#[derive(Debug)]
pub struct Link {
    /// Name for `--links`.
    pub key: &'static str,
    pub name: &'static str,
    /// Rate of the bottleneck in Mbit/s, counting whole IP packets.
    pub mbit: u64,
    /// Boxes from the sender to the receiver.
    pub up: &'static str,
    /// Boxes from the receiver to the sender.
    pub down: &'static str,
    /// Factor of the runs' duration, for links on which a start takes many round trips.
    pub stretch: u64,
}

impl Link {
    /// The boxes of both directions.
    pub const fn boxes(&self) -> (&'static str, &'static str) {
        (self.up, self.down)
    }
}

/// wraith is judged by the first three links. Every queue is 100 ms long, the simulator's default.
pub const LINKS: [Link; 8] = [
    Link {
        key: "clean",
        name: "500 Mbit/s, 50 ms",
        mbit: 500,
        up: "rate=500 delay=25",
        down: "rate=500 delay=25",
        stretch: 1,
    },
    Link {
        key: "loss",
        name: "500 Mbit/s, 50 ms, 0.5 % loss",
        mbit: 500,
        up: "rate=500 delay=25 loss=0.5",
        down: "rate=500 delay=25",
        stretch: 1,
    },
    Link {
        key: "far",
        name: "100 Mbit/s, 100 ms, 0.1 % loss",
        mbit: 100,
        up: "rate=100 delay=50 loss=0.1",
        down: "rate=100 delay=50",
        stretch: 1,
    },
    Link {
        key: "satellite",
        name: "100 Mbit/s, 600 ms, 2 % loss",
        mbit: 100,
        up: "rate=100 delay=300 loss=2",
        down: "rate=100 delay=300",
        stretch: 3,
    },
    Link {
        key: "jitter",
        name: "100 Mbit/s, 20 ms, 5 ms jitter",
        mbit: 100,
        up: "rate=100 delay=10 jitter=5",
        down: "rate=100 delay=10",
        stretch: 1,
    },
    Link {
        key: "scramble",
        name: "100 Mbit/s, 20 ms, reordering within 5 ms",
        mbit: 100,
        up: "rate=100 delay=10 scramble=5",
        down: "rate=100 delay=10",
        stretch: 1,
    },
    Link {
        key: "wifi",
        name: "100 Mbit/s, 20 ms, batches of 10 ms, bursts of loss",
        mbit: 100,
        up: "rate=100 delay=10 batch=10 burst=0.5,10",
        down: "rate=100 delay=10 batch=10",
        stretch: 1,
    },
    Link {
        key: "cable",
        name: "100 Mbit/s, 20 ms, the cable pulled after 2 s for 5 s",
        mbit: 100,
        up: "rate=100 delay=10 cut=2000,5000",
        down: "rate=100 delay=10 cut=2000,5000",
        stretch: 1,
    },
];
