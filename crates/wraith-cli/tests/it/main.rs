//! Tests of the program as real processes: one behaviour in each module, and one test binary, so
//! that it is linked once.
//!
//! Invariants:
//!
//! - Each test uses a folder of its own (`support::World`). Tests run in parallel, so none changes
//!   the environment, the working directory or a limit of this process.
//! - A test that uses the local network has one of its own (`support::lan`, `support::cable`). All
//!   other tests share loopback.
//!
//! `lying` and `raw_peer` are the peers that tests control themselves.

mod after_minutes;
mod any_odd_target;
mod at_a_terminal;
mod backends;
mod changing_files;
mod clocks;
mod clocks_of_contacts;
mod clocks_of_servers;
mod closing_lines;
mod codes;
mod codes_between_machines;
mod codes_from_other_networks;
mod completions;
mod conditions;
mod config;
mod connections;
mod consent;
mod contacts;
mod contacts_between_machines;
mod control_characters;
mod crypto;
mod damaged_content;
mod demo;
mod doctor;
mod documentation;
mod failed_write_back;
mod few_descriptors;
mod first_transfer;
mod flooded_network;
mod full_disk;
mod grown_between_runs;
mod homes;
mod hostile_packets;
mod hostile_sender;
mod id_and_hash;
mod idle;
mod interrupted;
mod json_events;
mod json_schema;
mod kept_files;
mod kill_and_resume;
mod large_file;
mod left_out;
mod libraries;
mod links_lead_nowhere;
mod listen;
mod logging;
mod lost_peer;
mod lying;
mod lying_about_old_copies;
mod lying_receiver;
mod lying_streams;
mod manifest_without_end;
mod many_networks;
mod many_senders;
mod modes;
mod narrow_paths;
mod no_network;
mod odd_targets;
mod offers;
mod old_copies;
mod over_the_dht;
mod pages;
mod peer_relays;
mod pipes;
mod policies;
mod power_cut;
mod progress;
mod proxies;
mod qlog;
mod rates;
mod raw_peer;
mod receipts;
mod recipes;
mod records_never_asked_for;
mod refused;
mod relay;
mod relay_view;
mod rendezvous;
mod resumed_figures;
mod round_trip;
mod several_receivers;
mod silent_peer;
mod sleep;
mod small_files;
mod sparse_terabyte;
mod speed;
mod spent_codes;
mod strangers;
mod support;
mod suspension;
mod taken_by_another_kind;
mod taken_meanwhile;
mod through_relays;
mod ticket_at_once;
mod ticket_of_a_code;
mod two_codes_of_one_offer;
mod two_of_one_identity;
mod typed;
mod unsafe_names;
mod unwritable_output;
mod usage;
mod verify;
mod wrong_ticket;
