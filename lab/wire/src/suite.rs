//! The tests of each population.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use crate::checks::bit_bias;
use crate::checks::byte_frequency::ByteCounts;
use crate::checks::compression::{self, Compressed};
use crate::checks::consecutive::Consecutive;
use crate::checks::repeats::{self, Pairs};
use crate::checks::sample::{Sample, UNALIGNED};
use crate::checks::serial::Serial;
use crate::checks::winnowing::Winnowed;
use crate::checks::{CheckFigure, correlation, elligator, lengths, ml_kem};
use crate::curve::Bytes;
use crate::driver::{Dial, Packet};
use crate::finding::Finding;

/// First bytes of a handshake datagram that are compared with those of other dials.
const COMPARED_OF_A_DIAL: usize = 1200;

/// The tests of all populations: they observe datagrams in sequence and keep little of them.
#[derive(Debug)]
pub struct Observer {
    population: String,
    counts: ByteCounts,
    serial: Serial,
    consecutive: Consecutive,
    compressed: Compressed,
    sample: Sample,
    pairs: Vec<Pairs>,
}

impl Observer {
    /// Creates an observer of unrelated datagrams.
    pub fn of_single_datagrams(population: impl Into<String>) -> Self {
        Self::new(population.into(), Sample::new(1, COMPARED_OF_A_DIAL), vec![Pairs::All])
    }

    /// Creates an observer of packets of connections; it compares one in `every` with others.
    pub fn of_connections(every: usize) -> Self {
        let pairs = vec![Pairs::All, Pairs::OfAConnection];
        Self::new("data packets".to_owned(), Sample::new(every, UNALIGNED), pairs)
    }

    fn new(population: String, sample: Sample, pairs: Vec<Pairs>) -> Self {
        Self {
            population,
            counts: ByteCounts::default(),
            serial: Serial::default(),
            consecutive: Consecutive::default(),
            compressed: Compressed::default(),
            sample,
            pairs,
        }
    }

    /// Observes the next datagram of a series, at a time in any unit.
    pub fn add(&mut self, connection: usize, series: usize, time: u64, bytes: &[u8]) {
        self.counts.add(bytes);
        self.serial.add(bytes);
        self.consecutive.add(series, bytes);
        self.compressed.add(bytes);
        self.sample.add(connection, time, bytes);
    }

    /// Observes a packet of a connection.
    pub fn add_packet(&mut self, packet: Packet) {
        let Packet { connection, direction, index, bytes } = packet;
        self.add(connection, 2 * connection + direction, index as u64, bytes);
    }

    /// Shannon's entropy of all bytes so far, in bits per byte.
    pub fn entropy(&self) -> f64 {
        self.counts.entropy()
    }

    /// Returns the findings.
    pub fn findings(self) -> Vec<Finding> {
        let mut figures = self.counts.figures();
        figures.extend(bit_bias::figures(&self.counts));
        figures.extend(self.serial.figures());
        figures.extend(self.consecutive.figures());
        figures.extend(compression::figures(self.compressed.finish()));
        figures.extend(correlation::figures(&self.sample));
        for pairs in self.pairs {
            figures.extend(repeats::figures(&self.sample, pairs));
        }
        of(&self.population, figures)
    }
}

/// Returns the findings about unrelated datagrams.
pub fn single_datagrams(population: &str, datagrams: &[Vec<u8>]) -> Vec<Finding> {
    let mut observer = Observer::of_single_datagrams(population);
    let mut winnowed = Winnowed::default();
    for (i, bytes) in datagrams.iter().enumerate() {
        observer.add(0, 0, i as u64, bytes);
        winnowed.add(bytes);
    }
    let mut findings = observer.findings();
    findings.extend(of(population, winnowed.figures()));
    findings
}

/// Returns the findings about handshakes, and notes about datagrams that were not tested. Datagrams
/// are identified by direction and index; those that fewer than half of the dials have are too few.
pub fn dials(dials: &[Dial]) -> (Vec<Finding>, Vec<String>) {
    let (mut findings, mut notes) = (Vec::new(), Vec::new());
    let mut winnowed = Winnowed::default();
    for (direction, side) in ["initiator", "responder"].into_iter().enumerate() {
        for index in 0.. {
            let population = format!("handshake, {side}, datagram {}", index + 1);
            let mut observer = Observer::of_single_datagrams(&population);
            let mut count = 0;
            for dial in dials {
                let wanted = dial.datagrams.iter();
                let mut wanted = wanted.filter(|d| (d.direction, d.index) == (direction, index));
                if let Some(datagram) = wanted.next() {
                    observer.add(0, 0, dial.unix_seconds, &datagram.bytes);
                    winnowed.add(&datagram.bytes);
                    count += 1;
                }
            }
            if count == 0 {
                break;
            }
            if 2 * count < dials.len() {
                notes.push(format!("skipped: {population}: only {count} dials have one"));
                continue;
            }
            findings.extend(observer.findings());
        }
        let population = format!("handshake, {side}");
        let flights: Vec<Vec<u8>> = dials.iter().map(|dial| flight(dial, direction)).collect();
        let first = |flight: &Vec<u8>| flight.first_chunk::<32>().copied();
        let firsts: Vec<Bytes> = flights.iter().filter_map(first).collect();
        findings.extend(of(&population, elligator::figures(&firsts)));
        findings.extend(of(&population, ml_kem::figures(&flights)));
    }
    findings.extend(of("handshake", winnowed.figures()));
    let sizes = |dial: &Dial| dial.datagrams.iter().map(|datagram| datagram.bytes.len()).collect();
    let sizes: Vec<Vec<usize>> = dials.iter().map(sizes).collect();
    findings.extend(of("handshake", lengths::sequences(&sizes)));
    (findings, notes)
}

/// Returns the findings about the sizes of first datagrams.
pub fn firsts(firsts: &[Vec<u8>]) -> Vec<Finding> {
    of("first datagrams", lengths::sizes(firsts))
}

/// Returns all handshake bytes of one side, as one string.
pub fn flight(dial: &Dial, direction: usize) -> Vec<u8> {
    let said = dial.datagrams.iter().filter(|datagram| datagram.direction == direction);
    said.flat_map(|datagram| datagram.bytes.iter().copied()).collect()
}

/// Returns a separate generator for each part of a run, so that one part does not change the random
/// numbers of another.
pub fn generator(seed: u64, part: u64) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    rng.set_stream(part);
    rng
}

/// Assigns figures to a population.
pub fn of(population: &str, figures: Vec<CheckFigure>) -> Vec<Finding> {
    figures.into_iter().map(|figured| figured.of(population)).collect()
}
