//! The program itself, as real processes: one behaviour a module, one binary, so that it is linked once.
//!
//! What a test starts has a folder of its own (`support::World`) and nothing else of this process: tests run at the same
//! time, so none of them changes the environment, the working directory or a limit. What all of them share is the network:
//! those that meet by multicast on loopback take turns (`support::lan`). `lying` and `raw_peer` are the peers that
//! tests play themselves.

mod at_a_terminal;
mod changing_files;
mod closing_lines;
mod codes;
mod codes_between_machines;
mod config;
mod connections;
mod consent;
mod contacts;
mod contacts_between_machines;
mod control_characters;
mod damaged_content;
mod demo;
mod doctor;
mod documentation;
mod failed_write_back;
mod flooded_network;
mod full_disk;
mod hostile_packets;
mod hostile_sender;
mod id_and_hash;
mod idle;
mod interrupted;
mod json_events;
mod json_schema;
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
mod modes;
mod offers;
mod old_copies;
mod pages;
mod pipes;
mod power_cut;
mod progress;
mod qlog;
mod rates;
mod raw_peer;
mod receipts;
mod records_never_asked_for;
mod refused;
mod rendezvous;
mod round_trip;
mod several_receivers;
mod silent_peer;
mod sleep;
mod slow_disk;
mod small_files;
mod spent_codes;
mod strangers;
mod support;
mod taken_by_another_kind;
mod taken_meanwhile;
mod ticket_at_once;
mod ticket_of_a_code;
mod unsafe_names;
mod unwritable_output;
mod usage;
mod verify;
mod wrong_ticket;
