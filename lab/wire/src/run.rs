//! A whole run: records and tests populations, then the controls.

use std::io;
use std::time::Instant;

use crate::checks::winnowing::Winnowed;
use crate::checks::{censor, early};
use crate::controls::{CONTROLS, Material, Recorded};
use crate::driver::{self, Load};
use crate::finding::{Finding, judge};
use crate::outcome::Outcome;
use crate::outside::ExternalTesters;
use crate::suite::{self, Observer, generator};
use crate::{others, report};

/// Parts for [`generator`].
mod part {
    pub const DIALS: u64 = 1;
    pub const FIRSTS: u64 = 2;
    pub const LAN: u64 = 3;
    pub const PUNCHES: u64 = 4;
    pub const REFLECTIONS: u64 = 5;
    pub const DHT: u64 = 6;
    pub const SESSIONS: u64 = 7;
    /// The first of the parts for connections, one for each.
    pub const CONNECTIONS: u64 = 1000;
}

/// Amount of recorded data.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Number of handshakes, and of datagrams of each kind outside connections.
    pub dials: usize,
    /// Number of first datagrams whose sizes are examined.
    pub firsts: usize,
    /// Number of connections.
    pub connections: usize,
    /// Bytes on the wire of each connection.
    pub load: Load,
    /// One packet in this many is compared with others.
    pub every: usize,
    /// Number of connections whose packets are kept for the controls.
    pub kept: usize,
    /// Whether to include records of the DHT, which no seed reproduces, and external programs.
    pub unrepeatable: bool,
}

/// 1 GiB of packets.
pub const FULL: Form = Form {
    dials: 10_000,
    firsts: 20_000,
    connections: 16,
    load: Load { bulk: 56 << 20, chatter: 8 << 20, message_max: 120 },
    every: 16,
    kept: 2,
    unrepeatable: true,
};

/// 16 MiB of packets, which takes seconds. It gives the same figures on every machine with AES
/// instructions, which determine the cipher. Most packets are short, so that there are enough of
/// them to detect a bit with a bias of one percent.
pub const SMALL: Form = Form {
    dials: 300,
    firsts: 2000,
    connections: 4,
    load: Load { bulk: 1 << 20, chatter: 3 << 20, message_max: 40 },
    every: 24,
    kept: 4,
    unrepeatable: false,
};

/// Records and tests all populations, and proves with controls that the tests detect mistakes.
///
/// # Errors
/// An external program, or the runtime for the DHT's records, cannot be run.
pub fn run(form: Form, seed: u64, tell: impl Fn(&str)) -> io::Result<Outcome> {
    let begun = Instant::now();
    let tell = |what: &str| tell(&format!("{:6.1} s: {what}", begun.elapsed().as_secs_f64()));
    let mut notes = Vec::new();
    let mut findings: Vec<Finding> = Vec::new();

    tell("handshakes");
    let dials = driver::dials(form.dials, &mut generator(seed, part::DIALS));
    let (of_dials, skipped) = suite::dials(&dials);
    findings.extend(of_dials);
    notes.extend(skipped);
    let firsts = driver::first_datagrams(form.firsts, &mut generator(seed, part::FIRSTS));
    findings.extend(suite::firsts(&firsts));
    notes.extend(report::censor(&censor::exempt(&firsts)));

    tell("first datagrams of sessions");
    let mut rng = generator(seed, part::SESSIONS);
    let sessions = driver::sessions(form.dials, early::FIRST_DATAGRAMS, &mut rng);
    findings.extend(suite::of("sessions", early::figures(&sessions)));
    notes.extend(early::notes(&sessions));

    tell("datagrams outside connections");
    let lan = others::lan_packets(form.dials, &mut generator(seed, part::LAN));
    findings.extend(suite::single_datagrams("local network", &lan));
    let punches = others::punches(form.dials, &mut generator(seed, part::PUNCHES));
    findings.extend(suite::single_datagrams("punches", &punches));
    let reflections = others::reflections(form.dials, &mut generator(seed, part::REFLECTIONS));
    findings.extend(suite::single_datagrams("questions to a reflector", &reflections.0));
    findings.extend(suite::single_datagrams("answers of a reflector", &reflections.1));
    if form.unrepeatable {
        let values = others::dht_values(form.dials, &mut generator(seed, part::DHT))?;
        findings.extend(suite::single_datagrams("records of the DHT", &values));
    } else {
        notes.push("skipped: records of the DHT: their salts and hours follow from no seed; the full form has them".into());
    }
    notes.push("skipped: datagrams of a relay: the library has no public function that makes them; their payload is tested".into());

    tell("data packets");
    let mut judges =
        if form.unrepeatable { ExternalTesters::start() } else { ExternalTesters::default() };
    let mut observer = Observer::of_connections(form.every);
    let mut winnowed = Winnowed::default();
    let mut kept: Vec<Recorded> = Vec::new();
    let (mut packets, mut bytes) = (0_u64, 0);
    for number in 0..form.connections {
        let mut rng = generator(seed, part::CONNECTIONS + number as u64);
        driver::connection(number, form.load, &mut rng, |packet| {
            packets += 1;
            bytes += packet.bytes.len();
            observer.add_packet(packet);
            winnowed.add(packet.bytes);
            judges.add(packet.bytes);
            if number < form.kept {
                kept.push(packet.into());
            }
        });
    }
    let entropy = observer.entropy();
    notes.push(format!(
        "data packets: {packets}, {bytes} bytes, {entropy:.9} bits of entropy per byte"
    ));
    let verdicts = judges.finish()?;
    notes.extend(verdicts.notes);
    tell("figures of data packets");
    findings.extend(observer.findings());
    findings.extend(suite::of("data packets", winnowed.figures()));
    let judged = judge(findings);

    let material = Material { dials: &dials, firsts: &firsts, sessions: &sessions, packets: &kept };
    let controls = CONTROLS.iter().map(|control| {
        tell(&format!("control: {}", control.name));
        (control.name, control.caught_by(&material, form.every_of_controls(), seed))
    });
    let controls = controls.collect();
    tell("done");
    Ok(Outcome { judged, controls, notes, failed_outside: verdicts.failed })
}

impl Form {
    /// Controls have fewer packets, a larger share of which is compared.
    fn every_of_controls(&self) -> usize {
        (self.every * self.kept / self.connections).max(1)
    }
}
