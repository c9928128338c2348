//! Offers files by code, or by ticket if no meeting place is available: `cargo run --example send
//! -- FILE…`

use wraith::{Node, Payload};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), wraith::Error> {
    let node = Node::builder().build()?;
    let offer = node.offer(Payload::paths(std::env::args_os().skip(1))).start().await?;
    match (offer.code(), offer.ticket()) {
        (Some(code), _) => println!("{code}"),
        (None, Some(ticket)) => println!("{ticket}"),
        (None, None) => println!("only earlier receivers can fetch: {:?}", offer.continues_for()),
    }
    let sent = offer.finished().await?;
    sent.complete()?;
    eprintln!("sent to {} receiver", sent.receivers);
    Ok(())
}
