//! Fetches the offer behind a code or ticket: `cargo run --example receive -- CODE [FOLDER]`

use wraith::{Node, OnConflict, Source};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), wraith::Error> {
    let mut words = std::env::args().skip(1);
    let source: Source = words.next().unwrap_or_default().parse()?;
    let folder = words.next().unwrap_or_else(|| ".".into());
    let node = Node::builder().build()?;
    let transfer = node.fetch(source, folder).accept_all(OnConflict::Rename);
    let received = transfer.finished().await?;
    received.complete()?;
    println!("{} files from {}", received.report.files, received.sender);
    Ok(())
}
