//! What this BBR does beyond draft-ietf-ccwg-bbr, one file each.
//!
//! The head of each file says the draft's rule, ours, why, and which cells of the scenario grid (`docs/performance/grid.md`)
//! it wins, as far as it was measured alone. Everything in the parent module can be read beside the draft; where it asks an
//! extension, it calls a function of one of these files.
//!
//! | file | the draft | ours |
//! |---|---|---|
//! | [`random_loss`] | every loss is congestion | loss that stays at a lower rate is the path's own |
//! | [`startup_loss`] | 2 % of loss in a round end Startup | more, depending on what else the round shows |
//! | [`rough_bound`] | each probe raises the bound from one packet a round | the first after a lossy Startup begins further on |
//! | [`probe_losses`] | a loss counts when it is noticed | a loss counts for the phase that sent the packet |
//! | [`first_window`] | one first window for every path | what 5 Mbit/s carry in a round trip |
//! | [`fast_startup`] | Startup doubles | it triples on long round trips until a queue shows |
//! | [`packet_train`], [`jump_start`] | nothing | the first burst's spread shows the bandwidth after one round trip |
//! | [`early_probes`] | probes come every 2 to 3 s | the first ones sooner |
//! | [`unfinished_probe`] | a probe ends by its own samples | it goes on if the last ACKs show that there is more |
//! | [`fast_probe`] | a probe sends a quarter faster | it doubles where that was not enough |
//! | [`persistent_queue`] | round trips only update `min_rtt` | three long ones in a row are a queue |
//! | [`headroom`] | headroom is a part of the bound | it is left in the queue, not in the pipe |
//! | [`ack_requests`] | at least 4 ACKs a round trip | 4, 8 or 16 in a window |
//! | [`empty_path`] | a smaller sample measures `min_rtt` | an equal one does so too |
//! | [`marks`] | no response to ECN CE | that of a round with loss beyond the threshold |
//! | [`host_delay`] | the offload budget is what leaves at once | and what hosts take to wake up |

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
