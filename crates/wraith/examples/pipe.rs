//! One stream of bytes: `… | cargo run --example pipe` prints a code, `cargo run --example pipe -- CODE` writes it out.

use wraith::{Node, OnConflict, Payload, Source, Target};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), wraith::Error> {
    let node = Node::builder().build()?;
    let Some(code) = std::env::args().nth(1) else {
        let offer = node.offer(Payload::reader("stdin", None, std::io::stdin())).start().await?;
        match offer.code() {
            Some(code) => println!("{code}"),
            None => println!("{}", offer.ticket().expect("an offer without a code has a ticket")),
        }
        return offer.finished().await?.complete();
    };
    let source: Source = code.parse()?;
    let target = Target::writer(std::io::stdout());
    node.fetch(source, target).accept_all(OnConflict::Rename).finished().await?.complete()
}
