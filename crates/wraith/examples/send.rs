//! Offers files by code: `cargo run --example send -- FILE…`

use wraith::{Node, Payload};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), wraith::Error> {
    let node = Node::builder().build()?;
    let offer = node.offer(Payload::paths(std::env::args_os().skip(1))).start().await?;
    match offer.code() {
        Some(code) => println!("{code}"),
        None => println!("{}", offer.ticket().expect("an offer without a code has a ticket")),
    }
    let sent = offer.finished().await?;
    sent.complete()?;
    eprintln!("sent to {} receiver", sent.receivers);
    Ok(())
}
