//! Offers files by code and ticket: `cargo run --example send -- FILE…`

use wraith::{Node, Payload};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), wraith::Error> {
    let node = Node::builder().build()?;
    let offer = node.offer(Payload::paths(std::env::args_os().skip(1))).start().await?;
    if let Some(code) = offer.code() {
        println!("{code}");
    }
    // It also works where there is no local network to meet on.
    println!("{}", offer.ticket().expect("only an offer to a contact has none"));
    let sent = offer.finished().await?;
    sent.complete()?;
    eprintln!("sent to {} receiver", sent.receivers);
    Ok(())
}
