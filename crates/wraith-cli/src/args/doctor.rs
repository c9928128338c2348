//! The arguments of `wraith doctor`.

use clap::Args;

use super::MeetingArgs;

#[derive(Args, Debug)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub meeting: MeetingArgs,
}
