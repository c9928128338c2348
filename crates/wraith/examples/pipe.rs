//! One stream of bytes: `… | cargo run --example pipe` prints a code, or a ticket where there is no place to meet, and
//! `cargo run --example pipe -- CODE` (or the ticket) writes it out.

use wraith::{Node, OnConflict, Payload, Source, Target};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), wraith::Error> {
    let node = Node::builder().build()?;
    let Some(words) = std::env::args().nth(1) else {
        let offer = node.offer(Payload::reader("stdin", None, std::io::stdin())).start().await?;
        match (offer.code(), offer.ticket()) {
            (Some(code), _) => println!("{code}"),
            (None, Some(ticket)) => println!("{ticket}"),
            (None, None) => unreachable!("only an offer to a contact has neither"),
        }
        return offer.finished().await?.complete();
    };
    let source: Source = words.parse()?;
    let target = Target::writer(std::io::stdout());
    node.fetch(source, target).accept_all(OnConflict::Rename).finished().await?.complete()
}
