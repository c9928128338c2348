//! The arguments of `wraith doctor`.

use clap::Args;

use super::MeetingArgs;

#[derive(Args, Debug)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub meeting: MeetingArgs,

    /// Measure as well how long the router's NAT, or a firewall, lets answers in when nothing passes; takes 3 minutes and a relay
    #[arg(long)]
    pub lifetime: bool,
}
