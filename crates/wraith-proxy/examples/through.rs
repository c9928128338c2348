//! Connects through a proxy, sends standard input and prints the answer. With `--udp`, sends one
//! datagram and prints the answer.
//!
//! ```console
//! $ printf 'HEAD / HTTP/1.0\r\n\r\n' | cargo run -p wraith-proxy --example through -- socks5://127.0.0.1:1080 HOST 80
//! $ cargo run -p wraith-proxy --example through -- socks5://127.0.0.1:1080 --udp HOST 9999 TEXT
//! ```

use std::process::ExitCode;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, stdin, stdout};
use tokio::net::UdpSocket;
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
        [proxy, "--udp", host, port, text] => {
            let association = Proxy::new(proxy.parse()?).associate(host, port.parse()?).await?;
            let any = if association.proxy().is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any).await?;
            socket.connect(association.proxy()).await?;
            socket.send(&[association.header(), text.as_bytes()].concat()).await?;
            let mut buffer = [0; 2048];
            let len = socket.recv(&mut buffer).await?;
            let header = association.header_from(&buffer[..len]).ok_or("a stray datagram")?;
            println!("{}", String::from_utf8_lossy(&buffer[header..len]));
        }
        [proxy, host, port] => {
            let mut stream = Proxy::new(proxy.parse()?).connect(host, port.parse()?).await?;
            let mut question = Vec::new();
            stdin().read_to_end(&mut question).await?;
            stream.write_all(&question).await?;
            copy(&mut stream, &mut stdout()).await?;
        }
        _ => return Err("PROXY HOST PORT, or PROXY --udp HOST PORT TEXT".into()),
    }
    Ok(())
}
