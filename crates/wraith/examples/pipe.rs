//! Transfers one byte stream. `… | cargo run --example pipe` prints a code, or a ticket if no
//! meeting place is available. `cargo run --example pipe -- CODE` (or the ticket) writes the stream
//! to standard output.

use wraith::{Node, OnConflict, Payload, Source, Target};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), wraith::Error> {
    let node = Node::builder().build()?;
    let Some(words) = std::env::args().nth(1) else {
        let offer = node.offer(Payload::reader("stdin", None, std::io::stdin())).start().await?;
        match (offer.code(), offer.ticket()) {
            (Some(code), _) => println!("{code}"),
            (None, Some(ticket)) => println!("{ticket}"),
            (None, None) => {
                println!("only earlier receivers can fetch: {:?}", offer.continues_for())
            }
        }
        return offer.finished().await?.complete();
    };
    let source: Source = words.parse()?;
    let target = Target::writer(std::io::stdout());
    node.fetch(source, target).accept_all(OnConflict::Rename).finished().await?.complete()
}
