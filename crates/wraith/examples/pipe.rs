//! One stream of bytes: `… | cargo run --example pipe` prints a code and a ticket, `cargo run --example pipe -- CODE`
//! (or a ticket) writes it out.

use wraith::{Node, OnConflict, Payload, Source, Target};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), wraith::Error> {
    let node = Node::builder().build()?;
    let Some(words) = std::env::args().nth(1) else {
        let offer = node.offer(Payload::reader("stdin", None, std::io::stdin())).start().await?;
        if let Some(code) = offer.code() {
            println!("{code}");
        }
        // It also works where there is no local network to meet on.
        println!("{}", offer.ticket().expect("only an offer to a contact has none"));
        return offer.finished().await?.complete();
    };
    let source: Source = words.parse()?;
    let target = Target::writer(std::io::stdout());
    node.fetch(source, target).accept_all(OnConflict::Rename).finished().await?.complete()
}
