//! The arguments of `wraith doctor`.

use clap::Args;

use super::MeetingArgs;

#[derive(Args, Debug)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub meeting: MeetingArgs,

    /// Also measure how long the router's NAT or a firewall keeps a mapping without traffic; takes
    /// 3 minutes and needs a relay
    #[arg(long)]
    pub lifetime: bool,
}
