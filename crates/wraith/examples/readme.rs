//! The example of the repository's README as a program; a test compares the two.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), wraith::Error> {
    let node = wraith::Node::builder().build()?;
    let offer = node.offer("film.mov").start().await?;
    if let Some(code) = offer.code() {
        println!("{code}"); // without a local network, a relay or the DHT there is only offer.ticket()
    }
    offer.finished().await?.complete()?;
    Ok(())
}
