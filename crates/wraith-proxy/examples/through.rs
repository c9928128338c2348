//! Connects through a proxy and joins the stream to standard input and output.
//!
//! ```console
//! $ printf 'HEAD / HTTP/1.0\r\n\r\n' | cargo run -p wraith-proxy --example through -- socks5://127.0.0.1:1080 HOST 80
//! $ cargo run -p wraith-proxy --example through -- socks5://127.0.0.1:1080 --udp 127.0.0.1:9999 TEXT
//! ```

use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, poll};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, stdin, stdout};
use wraith_proxy::Proxy;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [proxy, "--udp", to, text] => {
            let association = Proxy::new(proxy.parse()?).associate().await?;
            association.send(to.parse()?, text.as_bytes())?;
            poll(&mut [PollFd::new(&association, PollFlags::IN)], None)?;
            let mut buffer = [0; 2048];
            let (from, len) = association.receive(&mut buffer)?;
            println!("{from}: {}", String::from_utf8_lossy(&buffer[..len]));
        }
        [proxy, host, port] => {
            let mut stream = Proxy::new(proxy.parse()?).connect(host, port.parse()?).await?;
            let mut question = Vec::new();
            stdin().read_to_end(&mut question).await?;
            stream.write_all(&question).await?;
            copy(&mut stream, &mut stdout()).await?;
        }
        _ => return Err("PROXY HOST PORT, or PROXY --udp IP:PORT TEXT".into()),
    }
    Ok(())
}
