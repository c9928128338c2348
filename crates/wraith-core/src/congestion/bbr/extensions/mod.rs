//! Extensions of this BBR beyond draft-ietf-ccwg-bbr, one per file.
//!
//! The head of each file gives the draft's rule, this crate's rule ("ours") and the reason. Its
//! line "Grid" gives the cells of the scenario grid (`docs/performance/grid.md`) that the extension
//! improves. Some extensions were measured only together with others. The parent module follows the
//! draft section by section and calls the functions of these files.
//!
//! | file | the draft | ours |
//! |---|---|---|
//! | [`random_loss`] | every loss is congestion | loss that stays at a lower rate is random |
//! | [`startup_loss`] | 2 % of loss in a round end Startup | more, depending on the other signals of the round |
//! | [`rough_bound`] | each probe raises the bound from one packet a round | the first after a lossy Startup begins further on |
//! | [`probe_losses`] | a loss belongs to the round that detects it | a loss belongs to the phase that sent the packet |
//! | [`first_window`] | one initial window for every path | the bytes of 5 Mbit/s in a round trip |
//! | [`fast_startup`] | Startup doubles | it triples on long round trips until there is a queue |
//! | [`packet_train`], [`jump_start`] | nothing | the first burst's spread shows the bandwidth after one round trip |
//! | [`early_probes`] | probes come every 2 to 3 s | the first ones come sooner |
//! | [`unfinished_probe`] | a probe ends by its own samples | it continues if the last ACKs show more bandwidth |
//! | [`fast_probe`] | a probe sends a quarter faster | it doubles the rate if a quarter was not enough |
//! | [`persistent_queue`] | round trips only update `min_rtt` | three long ones in a row indicate a queue |
//! | [`headroom`] | headroom is a part of the bound | it is left in the queue, not in the pipe |
//! | [`ack_requests`] | at least 4 ACKs per round trip | 4, 8 or 16 per window |
//! | [`empty_path`] | only a smaller sample postpones ProbeRTT | an equal sample postpones it, too |
//! | [`marks`] | no response to ECN CE | the response to a round with loss beyond the threshold |
//! | [`host_delay`] | the offload budget covers batches | it also covers the wake-up time of the hosts |

pub(super) mod ack_requests;
pub(super) mod early_probes;
pub(super) mod empty_path;
pub(super) mod fast_probe;
pub(super) mod fast_startup;
pub(super) mod first_window;
pub(super) mod headroom;
pub(super) mod host_delay;
pub(super) mod jump_start;
pub(super) mod marks;
pub(super) mod packet_train;
pub(super) mod persistent_queue;
pub(super) mod probe_losses;
pub(super) mod random_loss;
pub(super) mod rough_bound;
pub(super) mod startup_loss;
pub(super) mod unfinished_probe;
