//! Sends lines and datagrams over a raw connection. `cargo run --example chat` prints a code and a
//! ticket, and waits; `… -- CODE` or `… -- TICKET` connects.
//!
//! Each side sends its standard input and prints the received bytes, until both inputs have ended.

use tokio::io::{AsyncWriteExt, copy, stdin, stdout};
use wraith::{Node, Service, ServiceAddress};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::builder().build()?;
    let (connection, mut send, mut receive) = match std::env::args().nth(1) {
        Some(invitation) => {
            let to: ServiceAddress = invitation.parse()?;
            let connection = node.connect(to).open().await?;
            let (mut send, receive) = connection.open_stream().await?;
            // The other side sees a stream only when its first bytes arrive.
            AsyncWriteExt::write_all(&mut send, b"[connected]\n").await?;
            (connection, send, receive)
        }
        None => {
            // Whichever of the two a peer uses: both services share one socket.
            let by_ticket = node.serve().start().await?;
            println!("{}", by_ticket.ticket().expect("it is by ticket"));
            // Without a local network there is no code, and a wrong guess ends it.
            let by_code = node.serve().by_code().start().await.ok();
            if let Some(code) = by_code.as_ref().and_then(Service::code) {
                println!("{code}");
            }
            let coded = async {
                if let Some(service) = &by_code
                    && let Some(connection) = service.accept().await
                {
                    return connection;
                }
                std::future::pending().await
            };
            let connection = tokio::select! {
                connection = by_ticket.accept() => connection.ok_or("the service has ended")?,
                connection = coded => connection,
            };
            let (send, receive) = connection.accept_stream().await?;
            (connection, send, receive)
        }
    };
    // A datagram may be lost, so do not wait for one.
    connection.send_datagram(b"hello".as_slice().into())?;
    let datagrams = connection.clone();
    tokio::spawn(async move {
        while let Ok(datagram) = datagrams.read_datagram().await {
            eprintln!("[{} says {}]", datagrams.peer(), String::from_utf8_lossy(&datagram));
        }
    });
    let sending = tokio::spawn(async move {
        copy(&mut stdin(), &mut send).await?;
        send.shutdown().await?;
        // Wait until the last line is acknowledged; the other side may close the connection right
        // after.
        let _ = send.acked().await;
        Ok::<_, std::io::Error>(())
    });
    copy(&mut receive, &mut stdout()).await?;
    sending.await??;
    connection.close(0x100, "that was all");
    connection.closed().await;
    Ok(())
}
