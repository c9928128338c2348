//! Two [`Streams`] joined by a channel that may lose, repeat and reorder, with every rule of flow control checked on
//! the way (`Pair`); what must hold for honest peers (`exchange`, `blocked`) and against hostile ones (`hostile`).

mod blocked;
mod exchange;
mod hostile;
mod pair;
mod repeats;
